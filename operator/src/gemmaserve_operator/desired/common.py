"""What several builders share: metadata with its owner, restricted pod security, scheduling, environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import RevisionSpec

Json = dict[str, Any]

USER_ID: Final = 2000
"""The serving image's user; its home is /home/vllm."""
CACHE_PATH: Final = "/home/vllm/.cache"


@dataclass(frozen=True, slots=True)
class Owner:
    """The GemmaServe that children belong to."""

    name: str
    namespace: str
    uid: str


def build_metadata(
    owner: Owner, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Json:
    """Metadata of a child; Kubernetes deletes it with its owner."""
    metadata: Json = {
        "name": name,
        "namespace": owner.namespace,
        "labels": dict(labels),
        "ownerReferences": [
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def revision_annotations(revision: Revision) -> dict[str, str]:
    """What each child of a revision says of it, so that any one of them is enough to make the others again."""
    annotations = {names.ANNOTATION_REVISION_SPEC: revision.to_record()}
    if revision.attempt:
        annotations[names.ANNOTATION_RETRY] = revision.attempt
    return annotations


def verified_annotations(verified: VerifiedRevision) -> dict[str, str]:
    """What the serving children of a revision say of it: the gate's Job may be another resource's, or be gone."""
    return revision_annotations(verified.revision) | {
        names.ANNOTATION_IMAGE_DIGEST: verified.digest,
        names.ANNOTATION_VERIFICATION: verified.record,
    }


def pod_security_context() -> Json:
    """Pod-level half of the restricted pod security standard."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "fsGroup": USER_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security_context() -> Json:
    """Container-level half of the restricted pod security standard, and a read-only root."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def build_placement(spec: RevisionSpec) -> Json:
    """Node selector, tolerations and affinity: what the gate and the serving pods have in common.

    The taint named as the GPU resource is tolerated by both. A cluster that adds this toleration by itself
    (ExtendedResourceToleration) does so only for pods that ask for GPUs, which the gate does not.
    """
    scheduling = spec.scheduling
    tolerations = [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in scheduling.tolerations]
    if spec.gpu_count:
        tolerations.append({"key": spec.resources.gpu.resource, "operator": "Exists"})
    placement: Json = {}
    if scheduling.node_selector:
        placement["nodeSelector"] = dict(scheduling.node_selector)
    if tolerations:
        placement["tolerations"] = tolerations
    if scheduling.affinity:
        placement["affinity"] = scheduling.affinity
    if spec.image.pull_secrets:
        placement["imagePullSecrets"] = [{"name": secret.name} for secret in spec.image.pull_secrets]
    return placement


def build_env(spec: RevisionSpec, own: dict[str, str]) -> list[Json]:
    """The user's variables, then ours (which win), then the token by reference."""
    values = {variable.name: variable.value for variable in spec.engine.env} | own
    env: list[Json] = [{"name": name, "value": value} for name, value in values.items()]
    if (token := spec.model.token_secret_ref) is not None:
        reference = {"name": token.name, "key": token.key}
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    return env
