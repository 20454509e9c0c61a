"""Records of revisions that have left: written before the last trace of what they were made from goes."""

from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.desired.revision_record import build_revision_record
from gemmaserve_operator.planning.objects import created, is_leaving
from gemmaserve_operator.planning.types import Write
from gemmaserve_operator.planning.view import RevisionState, View
from gemmaserve_operator.planning.writes import delete, ensure


def record(view: View, state: RevisionState) -> tuple[Write, ...]:
    """The write that keeps what a leaving revision was made from; none when its record is there.

    A revision that came back and leaves again is recorded anew, so that records are in the order of leaving.
    """
    verified = state.verified
    if state.deployment is None or is_leaving(state.deployment) or verified is None:
        return ()
    held, made = view.records.get(state.name), parse_time(created(state.deployment)) or view.now
    if held is not None and int(held.get("revision") or 0) > int(made.timestamp()):
        return ()
    wanted = build_revision_record(view.owner, verified, left=int(view.now.timestamp()))
    return ensure(wanted, held, view.strangers)


def forget_oldest(view: View) -> tuple[Write, ...]:
    """Deletes of the records beyond the history limit; of what is active or wanted there may be one more."""
    past = [held for name, held in view.records.items() if name not in (view.active, view.target.name)]
    newest_first = sorted(past, key=lambda held: int(held.get("revision") or 0), reverse=True)
    return tuple(
        write
        for held in newest_first[view.spec.revision_history_limit :]
        for write in delete("ControllerRevision", held, "beyond revisionHistoryLimit")
    )
