"""Turning what is wanted into writes: only where something differs, and never onto a stranger's object."""

from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.desired.deployment import TEMPLATE_VERSION
from gemmaserve_operator.planning.drift import needs_apply
from gemmaserve_operator.planning.objects import annotation, is_leaving, name_of, uid_of
from gemmaserve_operator.planning.types import Apply, Delete, Json, Write

_API_VERSIONS: Final = {"Job": "batch/v1", "Deployment": "apps/v1", "Service": "v1", "ControllerRevision": "apps/v1"}


def ensure(desired: Json, observed: Json | None, strangers: frozenset[tuple[str, str]]) -> tuple[Write, ...]:
    """The write that makes an object as wanted: none when it is, or is on its way out, or is a stranger's."""
    kind, name = desired["kind"], name_of(desired)
    if (kind, name) in strangers:
        return ()
    if observed is None:
        return (Apply(desired, f"create {kind} {name}", creates=True),)
    if is_leaving(observed):
        return ()
    difference = needs_apply(desired, observed)
    return () if difference is None else (_update(desired, observed, f"{kind} {name}: {difference} differs"),)


def keep_foreign_template(desired: Json, observed: Json | None) -> Json:
    """The Deployment with the pod template it has, when another version of the operator made that.

    Else upgrading the operator would restart serving pods.
    """
    version = annotation(observed, names.ANNOTATION_TEMPLATE_VERSION)
    if observed is None or version is None or version == TEMPLATE_VERSION:
        return desired
    annotations = desired["metadata"]["annotations"] | {names.ANNOTATION_TEMPLATE_VERSION: version}
    return desired | {
        "metadata": desired["metadata"] | {"annotations": annotations},
        "spec": desired["spec"] | {"template": observed["spec"]["template"]},
    }


def annotate_job(job: Json, annotations: dict[str, str]) -> Apply:
    """Add annotations to a Job that runs or has run; its spec, which cannot change, is sent as it is."""
    metadata = job["metadata"]
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": metadata["labels"],
            "annotations": (metadata.get("annotations") or {}) | annotations,
            "ownerReferences": metadata["ownerReferences"],
        },
        "spec": job["spec"],
    }
    return _update(body, job, f"record the verdict on Job {metadata['name']}")


def delete(kind: str, obj: Json | None, why: str) -> tuple[Write, ...]:
    """Delete an object, unless it is gone or going."""
    if obj is None or is_leaving(obj):
        return ()
    return (Delete(_API_VERSIONS[kind], kind, name_of(obj), uid_of(obj), why),)


def _update(desired: Json, observed: Json, why: str) -> Apply:
    return Apply(desired | {"metadata": desired["metadata"] | {"uid": uid_of(observed)}}, why)
