"""What keeps the operator itself from writing: somebody else's object of the same name, or a refusal."""

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.planning.problems import Problem
from gemmaserve_operator.planning.refusals import explain_refusal
from gemmaserve_operator.planning.view import View


def find_obstacle(view: View) -> Problem | None:
    """The first write that cannot be made; None when all can."""
    wanted = (
        ("Service", names.main_service_name(view.owner.name)),
        ("Job", names.gate_job_name(view.owner.name, view.target.name)),
        ("Job", names.live_job_name(view.owner.name, view.target.name)),
        ("Deployment", names.revision_name(view.owner.name, view.target.name)),
        ("Service", names.revision_name(view.owner.name, view.target.name)),
    )
    for kind, name in wanted:
        refusal = view.snapshot.refusals.get(f"{kind}/{name}")
        if (kind, name) in view.strangers or (refusal is not None and refusal.code == 409):
            return Problem(
                reasons.NAME_CONFLICT,
                f"{kind} {name} exists and belongs to something else; it is left alone. Delete it, or give this "
                "GemmaServe another name",
            )
    for written, refusal in sorted(view.snapshot.refusals.items()):
        return explain_refusal(written.replace("/", " "), refusal.message, otherwise=reasons.WRITE_REFUSED)
    return None
