"""docs/api.md, made from the types: `python -m gemmaserve_operator.api.reference > docs/api.md`."""

import sys
from collections.abc import Iterator
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.crd import build_crd
from gemmaserve_operator.api.metadata import NAME_RULE
from gemmaserve_operator.api.schema import Schema

_INTRODUCTION: Final = f"""\
<!-- Generated from operator/src/gemmaserve_operator/api by `make generate`; do not edit. -->
# The GemmaServe resource

`{names.API_VERSION}`, kind `{names.KIND}`, short name `{names.SHORT_NAME}`. A GemmaServe with only `spec.model.uri`,
`spec.image.repository` and a digest or tag is valid and serves; `examples/` holds some to copy. `kubectl explain
gemmaserve.spec --recursive` shows the same in a terminal.
"""
_REVISIONS: Final = f"""
## Revisions

A change of `model`, `image`, `engine`, `parallelism`, `resources`, `scheduling`, `storage` or
`startupTimeoutSeconds` makes a new revision: the parser gate runs in its image, its pods start, the live gate asks them
for tool calls when all are ready, and traffic moves to them. `replicas`, `rollout`, `routing`, `verification` and
labels never restart a pod.

The parser gate's verdict is about an image digest and the parser in it: a digest that has passed in a namespace is not
verified there again. The live gate's verdict is about a revision's pods, with their model and arguments: it is kept for
as long as the revision's Deployment is (an operator that starts anew asks nothing again), and a revision that comes
back later is checked again. What serves is not checked again, and neither are pods that are added by scaling.

The annotation `{names.ANNOTATION_RETRY}` with any new value asks for another attempt at a revision that failed, or
resolves a tag anew: `kubectl annotate gs NAME {names.ANNOTATION_RETRY}="$(date +%s)" --overwrite`.

When a revision's pods go, what it was made from is kept in a ControllerRevision, `NAME-REVISION`, for as long as
`revisionHistoryLimit` allows. `kubectl gemmaserve undo NAME` goes back to it ([kubectl-plugin.md](kubectl-plugin.md)).
"""


def render_reference() -> str:
    """The whole page."""
    schema = build_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parts = [_INTRODUCTION]
    for part in ("spec", "status"):
        parts.append(f"\n## {part.capitalize()}\n\n| field | type | default | meaning |\n|---|---|---|---|\n")
        parts += _rows(schema["properties"][part], part)
    parts.append("\n## Refused at admission, with these words\n\n")
    parts += [f"- {rule}\n" for rule in (NAME_RULE.message, *_rules(schema["properties"]["spec"]))]
    parts.append(_REVISIONS)
    return "".join(parts)


def _rows(schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        inner = part.get("items", part)
        here = f"{path}.{name}" + ("[]" if "items" in part else "")
        default = "required" if name in required else _default(part)
        yield f"| `{here}` | {_type(part)} | {default} | {part.get('description', '').replace('|', chr(92) + '|')} |\n"
        yield from _rows(inner, here)


def _default(part: Schema) -> str:
    default = part.get("default", "")
    return f"`{str(default).lower() if isinstance(default, bool) else default}`" if default not in ("", {}) else ""


def _type(part: Schema) -> str:
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if part.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "items" in part:
        return f"list of {_type(part['items'])}"
    if "additionalProperties" in part:
        return f"map of {_type(part['additionalProperties'])}"
    low, high = part.get("minimum"), part.get("maximum")
    bounds = f", {low} to {high}" if high is not None else f", at least {low}" if low is not None else ""
    return f"{part.get('type', 'any')}{bounds}"


def _rules(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", []):
        yield rule["message"]
    for part in schema.get("properties", {}).values():
        yield from _rules(part)


if __name__ == "__main__":
    sys.stdout.write(render_reference())
