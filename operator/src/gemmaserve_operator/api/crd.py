"""The CustomResourceDefinition, made from the types: `python -m gemmaserve_operator.api.crd > FILE`."""

import sys
from typing import Any

import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.api.metadata import NAME_RULE
from gemmaserve_operator.api.schema import structural_schema
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.api.status import GemmaServeStatus


def build_crd() -> dict[str, Any]:
    """The whole definition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names.PLURAL}.{names.GROUP}",
            # Uninstalling the chart must not delete every GemmaServe, and with them what serves.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.SINGULAR,
                "shortNames": [names.SHORT_NAME],
                "categories": ["all"],
            },
            "versions": [_build_version()],
        },
    }


def _build_version() -> dict[str, Any]:
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": _build_columns(),
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": "A Gemma model served by vLLM, behind gates that prove its tool calls stream whole.",
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    # The bound lets the API server tell the cost of the rule below.
                    "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
                    "spec": structural_schema(GemmaServeSpec),
                    "status": structural_schema(GemmaServeStatus),
                },
                "x-kubernetes-validations": [{"rule": NAME_RULE.cel, "message": NAME_RULE.message}],
            }
        },
    }


def _build_columns() -> list[dict[str, Any]]:
    def column(name: str, path: str, kind: str = "string", **more: int) -> dict[str, Any]:
        return {"name": name, "type": kind, "jsonPath": path, **more}

    return [
        column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        column("Active", ".status.activeRevision.name"),
        column("Candidate", ".status.candidateRevision.name"),
        column("Replicas", ".status.summary.replicas"),
        column("Verified", ".status.summary.verified"),
        column("Phase", ".status.phase"),
        column("Age", ".metadata.creationTimestamp", "date"),
        column("URL", ".status.url", priority=1),
        column("Image", ".status.activeRevision.image", priority=1),
        column("Model", ".spec.model.uri", priority=1),
    ]


def render_crd() -> str:
    """The definition as YAML, the same bytes for the same types."""
    head = "# Generated from operator/src/gemmaserve_operator/api by `make generate`; do not edit.\n"
    return head + str(yaml.safe_dump(build_crd(), sort_keys=False, width=110, allow_unicode=True))


if __name__ == "__main__":
    sys.stdout.write(render_crd())
