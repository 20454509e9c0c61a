"""What the API server's refusals mean: read from its words, since codes alone do not tell a quota from a webhook."""

import re
from typing import Final

from gemmaserve_operator.api import reasons
from gemmaserve_operator.planning.problems import Problem

_MEANINGS: Final = (
    (
        re.compile(r"because it is being terminated"),
        reasons.NAMESPACE_TERMINATING,
        "The namespace is being deleted, and this GemmaServe with it: apply it in another namespace",
    ),
    (
        re.compile(r"(exceeded|failed) quota: "),
        reasons.QUOTA_EXCEEDED,
        "Raise that ResourceQuota or free some of it: kubectl describe quota",
    ),
    (
        re.compile(r"failed calling webhook|denied (the )?request|violates PodSecurity"),
        reasons.ADMISSION_DENIED,
        "Have what denies it let it through: the message names the webhook or policy",
    ),
    (
        re.compile(r"field is immutable"),
        reasons.IMMUTABLE_FIELD,
        "Somebody has made this object anew with other values: delete it, and it is made again as it should be",
    ),
)
"""A mark in the API server's words (of Kubernetes' own code, the same since 1.30), the reason, the next step."""


def explain_refusal(what: str, words: str, *, otherwise: str) -> Problem:
    """The problem behind a refusal.

    Args:
        what: What was refused to be done, such as "create Job a".
        words: The API server's.
        otherwise: The reason when the words have no meaning known here.
    """
    for mark, reason, next_step in _MEANINGS:
        if mark.search(words):
            return Problem(reason, f"The API server refuses {what}: {words.rstrip('.')}. {next_step}")
    return Problem(otherwise, f"The API server refuses {what}: {words}")
