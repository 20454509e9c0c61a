"""The parser gate: nothing that serves is made of a revision before the regressions passed in its image."""

from pydantic import ValidationError

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.status import ParserRecord
from gemmaserve_operator.desired.gate_job import build_gate_job
from gemmaserve_operator.planning.job_gate import Gate, GateJob, run_job
from gemmaserve_operator.planning.verdict import Verdict, read_verdict
from gemmaserve_operator.planning.view import RevisionState, View


def pass_gate(view: View) -> Gate[Verdict]:
    """The target's verdict, or the next step towards one.

    A verdict counts from where it is recorded (a serving child, the Job), or from any gate of the namespace that
    passed the same digest with the same parser.
    """
    state = view.state(view.target.name)
    verdict = state.verdict or _verdict_of_namespace(view)
    return Gate(verdict=verdict) if verdict is not None else run_job(view, _job(view, state))


def _verdict_of_namespace(view: View) -> Verdict | None:
    spec = view.target.spec
    content = (view.snapshot.verifications or {}).get(spec.image.digest or "")
    if content is None:
        return None
    try:
        verdict = Verdict(ParserRecord.model_validate(content), spec.image.digest)
    except ValidationError:
        return None
    same_parser = verdict.record.parser == spec.engine.effective_tool_call_parser
    return verdict if verdict.passed and same_parser else None


def _job(view: View, state: RevisionState) -> GateJob[Verdict]:
    spec = view.target.spec
    parser, digest = spec.engine.effective_tool_call_parser, spec.image.digest
    timeout = view.spec.verification.parser.timeout_seconds
    return GateJob(
        job=state.job,
        pods=state.gate_pods,
        container=names.CONTAINER_GATE,
        running=reasons.PARSER_REGRESSIONS_RUNNING,
        does="runs the parser regressions",
        build=lambda: build_gate_job(view.owner, view.target, timeout_seconds=timeout),
        read=lambda job: read_verdict(job, state.gate_pods, parser=parser, written_digest=digest),
    )
