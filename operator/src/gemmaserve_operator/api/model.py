"""`spec.model`: which weights are served, and under what name."""

import re
from typing import Annotated, ClassVar, Final

from pydantic import Field

from gemmaserve_operator.api.base import Rule, SpecModel
from gemmaserve_operator.api.fields import ObjectName

ServedName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._:/]*$")]
GitRevision = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][-A-Za-z0-9._/]*$")]

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]*"
URI_PATTERN: Final = (
    rf"^(hf://{_SEGMENT}(/{_SEGMENT})?"
    rf"|pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/{_SEGMENT})*/?"
    rf"|oci://[A-Za-z0-9][A-Za-z0-9._:/-]*(@sha256:[a-f0-9]{{64}})?"
    rf"|file://(/{_SEGMENT})+/?)$"
)


class SecretKey(SpecModel):
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] = "token"
    """Key in the Secret."""


class Model(SpecModel):
    """The model that is served."""

    uri: Annotated[str, Field(min_length=1, max_length=1024)]
    """The weights: hf://ORG/MODEL, pvc://CLAIM/PATH, oci://IMAGE (a volume) or file:///PATH (in the image)"""
    name: ServedName | None = None
    """Name that clients ask for; default the resource's own name."""
    revision: GitRevision | None = None
    """Branch, tag or commit, for hf:// only; left out: the model's main branch."""
    token_secret_ref: SecretKey | None = None
    """Hugging Face token, for gated models. Pods refer to it; the operator never reads it."""

    RULES: ClassVar = (
        Rule(
            cel=f"self.uri.matches(r'{URI_PATTERN}')",
            check=lambda self: re.fullmatch(URI_PATTERN, self.uri) is not None,
            message="spec.model.uri must be hf://ORG/MODEL, pvc://CLAIM/PATH, oci://IMAGE[:TAG|@sha256:...] "
            "or file:///PATH",
        ),
        Rule(
            cel="!has(self.revision) || self.uri.startsWith('hf://')",
            check=lambda self: self.revision is None or self.uri.startswith("hf://"),
            message="spec.model.revision goes with an hf:// uri only: leave it out",
        ),
    )
