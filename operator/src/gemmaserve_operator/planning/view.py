"""What a snapshot says, worked out once: whose objects these are, by revision, and what is active and wanted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision, attempt_of, read_revision, revision_hash
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.desired.common import Owner
from gemmaserve_operator.planning.live_verdict import LiveVerdict
from gemmaserve_operator.planning.objects import (
    annotation,
    created,
    dig,
    is_leaving,
    label,
    name_of,
    owned_by,
    uid_of,
)
from gemmaserve_operator.planning.types import Json, Snapshot
from gemmaserve_operator.planning.verdict import Verdict, record_json

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class RevisionState:
    """One revision as it stands in the cluster."""

    name: str
    job: Json | None = None
    deployment: Json | None = None
    service: Json | None = None
    pods: tuple[Json, ...] = ()
    """Serving pods, those that are being deleted too, but not what evictions leave behind."""
    gate_pods: tuple[Json, ...] = ()
    """Pods of the gate's present Job."""
    live_job: Json | None = None
    live_pods: tuple[Json, ...] = ()
    """Pods of the live gate's present Job."""

    @property
    def children(self) -> tuple[Json, ...]:
        """The Jobs, the Deployment and the Service, as far as they are there."""
        children = (self.job, self.live_job, self.deployment, self.service)
        return tuple(child for child in children if child is not None)

    @property
    def revision(self) -> Revision | None:
        """What this revision is made from, by the record that its children carry."""
        records = (annotation(child, names.ANNOTATION_REVISION_SPEC) for child in self.children)
        return next((found for record in records if record and (found := read_revision(self.name, record))), None)

    @property
    def verdict(self) -> Verdict | None:
        """The gate's verdict, by the first child that records one."""
        records = (Verdict.from_annotations(child) for child in (self.job, self.deployment, self.service))
        return next((found for found in records if found is not None), None)

    @property
    def verified(self) -> VerifiedRevision | None:
        """This revision, if its gate has passed: the only thing that serving children are made from."""
        revision, verdict = self.revision, self.verdict
        return verified_revision(revision, verdict) if revision and verdict else None

    @property
    def live(self) -> LiveVerdict | None:
        """The live gate's verdict, by the first child that records one and stays."""
        holders = (self.live_job, self.deployment, self.service)
        records = (LiveVerdict.from_annotations(child) for child in holders if child and not is_leaving(child))
        return next((found for found in records if found is not None), None)

    @property
    def failed(self) -> str | None:
        """Why this revision was given up as a candidate, as JSON."""
        return annotation(self.deployment, names.ANNOTATION_FAILED)

    @property
    def serving_since(self) -> str | None:
        """When traffic moved to this revision, if it ever did."""
        return annotation(self.deployment, names.ANNOTATION_SERVING_SINCE)

    @property
    def created(self) -> str | None:
        """When its first child was made."""
        return min((created(child) for child in self.children), default=None)


def verified_revision(revision: Revision, verdict: Verdict) -> VerifiedRevision | None:
    """The revision with its verdict, if that opens the way to traffic."""
    if not verdict.passed or verdict.digest is None:
        return None
    return VerifiedRevision(revision, verdict.digest, record_json(verdict.record))


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot, worked out."""

    snapshot: Snapshot
    spec: GemmaServeSpec
    owner: Owner
    now: datetime
    states: Mapping[str, RevisionState]
    main_service: Json | None
    active: str | None
    """The revision that the main Service selects."""
    target: Revision
    """The revision that the spec asks for."""
    records: Mapping[str, Json] = field(default_factory=dict)
    """The records of revisions that have left, by revision."""
    strangers: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """Kind and name of labelled objects that are somebody else's."""

    def state(self, revision: str) -> RevisionState:
        """The revision's state; an empty one when nothing of it is there."""
        return self.states.get(revision, RevisionState(revision))

    @property
    def candidate(self) -> str | None:
        """The target, while it is not the active revision."""
        return self.target.name if self.target.name != self.active else None


def build_view(snapshot: Snapshot, spec: GemmaServeSpec, now: datetime) -> View:
    """Sort a snapshot's objects by revision, and find the active and the target revision."""
    metadata = snapshot.resource["metadata"]
    owner = Owner(name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])
    states = _sort_by_revision(snapshot, owner)
    services = {name_of(service): service for service in _owned(snapshot.services, owner)}
    main = services.get(names.main_service_name(owner.name))
    active = _find_active(states, main, live_gate=spec.verification.live.enabled)
    strangers = frozenset(
        (kind, name_of(child))
        for kind, children in (
            ("Job", snapshot.jobs),
            ("Deployment", snapshot.deployments),
            ("Service", snapshot.services),
            ("ControllerRevision", snapshot.revision_records),
        )
        for child in children
        if not owned_by(child, owner.uid)
    )
    return View(
        snapshot=snapshot,
        spec=spec,
        owner=owner,
        now=now,
        states=states,
        main_service=main,
        active=active,
        target=_find_target(spec, attempt_of(annotation(snapshot.resource, names.ANNOTATION_RETRY)), states, active),
        records=_by_revision(snapshot.revision_records, owner),
        strangers=strangers,
    )


def _owned(objects: Iterable[Json], owner: Owner) -> list[Json]:
    return [obj for obj in objects if owned_by(obj, owner.uid)]


def _by_revision(objects: Iterable[Json], owner: Owner) -> dict[str, Json]:
    return {revision: obj for obj in _owned(objects, owner) if (revision := label(obj, names.LABEL_REVISION))}


def _sort_by_revision(snapshot: Snapshot, owner: Owner) -> dict[str, RevisionState]:
    jobs = _by_revision((job for job in snapshot.jobs if not _is_live(job)), owner)
    live_jobs = _by_revision((job for job in snapshot.jobs if _is_live(job)), owner)
    deployments = _by_revision(snapshot.deployments, owner)
    services = _by_revision(snapshot.services, owner)
    job_uids = {uid_of(job) for job in (*jobs.values(), *live_jobs.values())}
    servers: dict[str, list[Json]] = defaultdict(list)
    gates: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for pod in snapshot.pods:
        revision = label(pod, names.LABEL_REVISION) or ""
        component = label(pod, names.LABEL_COMPONENT)
        if component == names.COMPONENT_SERVER and dig(pod, "status", "phase") not in _ENDED:
            servers[revision].append(pod)
        elif component in names.GATES and any(owned_by(pod, uid) for uid in job_uids):
            gates[component, revision].append(pod)
    return {
        revision: RevisionState(
            name=revision,
            job=jobs.get(revision),
            deployment=deployments.get(revision),
            service=services.get(revision),
            pods=tuple(servers[revision]),
            gate_pods=tuple(gates[names.COMPONENT_GATE, revision]),
            live_job=live_jobs.get(revision),
            live_pods=tuple(gates[names.COMPONENT_LIVE, revision]),
        )
        for revision in sorted({*jobs, *live_jobs, *deployments, *services, *servers})
        if revision
    }


def _is_live(job: Json) -> bool:
    return label(job, names.LABEL_COMPONENT) == names.COMPONENT_LIVE


def _find_active(states: Mapping[str, RevisionState], main: Json | None, *, live_gate: bool) -> str | None:
    """The revision that the main Service selects, if it is a verified one of ours that traffic was meant for.

    While that Service is missing or points elsewhere (somebody deleted or edited it), it is the one that traffic
    moved to last, by its own mark.
    """
    selected = states.get(str(dig(main, "spec", "selector", names.LABEL_REVISION)))
    if selected is not None and selected.verified is not None:
        checked = not live_gate or (selected.live is not None and selected.live.passed)
        if checked or selected.serving_since:
            return selected.name
    served = [state for state in states.values() if state.serving_since and state.verified]
    latest = max(served, key=lambda state: (state.serving_since, state.name), default=None)
    return latest.name if latest else None


def _find_target(
    spec: GemmaServeSpec, attempt: str, states: Mapping[str, RevisionState], active: str | None
) -> Revision:
    """The revision that the spec asks for, as the attempt at it that counts.

    Each new value of the retry annotation asks for one more attempt. It is used up by the first revision made under
    it, so that going back to an older spec later is not taken for another attempt, and neither is removing it. A
    revision that already serves from a digest has nothing to try again.
    """
    wanted = revision_hash(spec)
    same = [state for state in states.values() if (made := state.revision) and made.spec_hash == wanted]
    serves = next((state for state in same if state.name == active), None)
    used = any(annotation(child, names.ANNOTATION_RETRY) == attempt for s in states.values() for child in s.children)
    if attempt and not used and not (serves and spec.image.digest):
        return Revision.of(spec, attempt)
    tried = (state for state in same if attempt and state.revision and state.revision.attempt == attempt)
    known = next(tried, None) or serves or max(same, key=_age, default=None)
    return (known.revision if known else None) or Revision.of(spec, attempt)


def _age(state: RevisionState) -> tuple[str, str]:
    return (max((created(child) for child in state.children), default=""), state.name)
