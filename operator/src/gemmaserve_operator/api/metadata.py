"""The one rule about `metadata`: the name, from which the names and labels of children are made."""

import re
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.base import Rule

_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

NAME_RULE: Final = Rule(
    cel=f"self.metadata.name.size() <= {names.MAX_NAME_LENGTH} && self.metadata.name.matches('{_PATTERN}')",
    check=lambda name: len(name) <= names.MAX_NAME_LENGTH and re.fullmatch(_PATTERN, name) is not None,
    message=f"metadata.name must be at most {names.MAX_NAME_LENGTH} characters of a-z, 0-9 and -, and start with a "
    "letter: it names the Service, and longer names are made from it",
)
