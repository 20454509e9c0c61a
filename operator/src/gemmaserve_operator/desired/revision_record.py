"""The ControllerRevision of a revision that has left: what it was made from, so that a user can go back to it."""

import json

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.desired.common import Json, Owner, build_metadata


def build_revision_record(owner: Owner, verified: VerifiedRevision, *, left: int) -> Json:
    """The record of a revision, named as its Deployment was.

    Args:
        owner: The GemmaServe.
        verified: The revision, with its gate's record.
        left: When it left, in seconds since 1970: the higher, the later, as Kubernetes has a ControllerRevision's
            `revision`.
    """
    revision = verified.revision
    labels = names.labels(owner.name, names.COMPONENT_RECORD, revision.name)
    annotations = {names.ANNOTATION_IMAGE_DIGEST: verified.digest, names.ANNOTATION_VERIFICATION: verified.record}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": build_metadata(owner, names.revision_name(owner.name, revision.name), labels, annotations),
        "data": {"spec": json.loads(revision.to_record())["spec"]},
        "revision": left,
    }
