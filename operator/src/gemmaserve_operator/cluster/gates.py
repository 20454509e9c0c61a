"""What all gate Jobs together say: how many run, and which images have passed in which namespace."""

from collections import defaultdict
from collections.abc import Mapping

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import Json
from gemmaserve_operator.planning.objects import condition, is_leaving, label
from gemmaserve_operator.planning.verdict import Verdict


class GateIndex:
    """Kept up to date Job by Job, so that no reconcile reads the Jobs of the others."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._place: dict[str, tuple[str, str]] = {}
        self._passed: dict[str, dict[str, dict[str, Json]]] = defaultdict(lambda: defaultdict(dict))

    @property
    def running(self) -> int:
        """Gate Jobs that have been made and have not ended."""
        return len(self._running)

    def verifications(self, namespace: str) -> Mapping[str, Json]:
        """Passed records of a namespace by image digest; of several, the one of the first Job by uid."""
        return {digest: records[min(records)] for digest, records in self._passed.get(namespace, {}).items()}

    def put(self, job: Json) -> None:
        """A Job is there, or has changed."""
        self.discard(job)
        uid = job["metadata"]["uid"]
        component = label(job, names.LABEL_COMPONENT)
        if component not in names.GATES or is_leaving(job):
            return
        if condition(job, "Complete") is None and condition(job, "Failed") is None:
            self._running.add(uid)
        if component != names.COMPONENT_GATE:
            return
        verdict = Verdict.from_annotations(job)
        if verdict is not None and verdict.passed and verdict.digest is not None and _is_ours(job):
            namespace = job["metadata"]["namespace"]
            self._place[uid] = (namespace, verdict.digest)
            record = verdict.record.model_dump(mode="json", by_alias=True, exclude_none=True)
            self._passed[namespace][verdict.digest][uid] = record

    def discard(self, job: Json) -> None:
        """A Job is gone."""
        uid = job["metadata"]["uid"]
        self._running.discard(uid)
        if uid not in self._place:
            return
        namespace, digest = self._place.pop(uid)
        records = self._passed[namespace][digest]
        del records[uid]
        if not records:
            del self._passed[namespace][digest]


def _is_ours(job: Json) -> bool:
    """Whether a GemmaServe controls the Job: a label alone proves nothing."""
    references = job["metadata"].get("ownerReferences") or []
    return any(
        reference.get("controller")
        and reference.get("kind") == names.KIND
        and str(reference.get("apiVersion")).partition("/")[0] == names.GROUP
        for reference in references
    )
