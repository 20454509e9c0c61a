"""`spec.scheduling`: where serving pods, and the gate that warms their nodes, may run."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from gemmaserve_operator.api.base import Rule, SpecModel
from gemmaserve_operator.api.fields import LabelValue, ObjectName, QualifiedName

Verbatim = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class Toleration(SpecModel):
    """A taint that serving pods and the gate tolerate, as in a pod."""

    key: QualifiedName | None = None
    """Key of the taint; left out with operator Exists it matches every taint."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Equal compares the value too; Exists matches any value."""
    value: LabelValue | None = None
    """Value of the taint, for operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; left out it matches every effect."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """How long a NoExecute taint is tolerated, in seconds; left out: for ever."""

    RULES: ClassVar = (
        Rule(
            cel="self.operator == 'Exists' ? !has(self.value) : has(self.key)",
            check=lambda self: self.value is None if self.operator == "Exists" else self.key is not None,
            message="a toleration needs a key, or operator: Exists without a value",
        ),
        Rule(
            cel="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            check=lambda self: self.toleration_seconds is None or self.effect == "NoExecute",
            message="tolerationSeconds goes with effect: NoExecute only",
        ),
    )


class TopologySpreadConstraint(SpecModel):
    """How evenly serving pods spread over zones or nodes, as in a pod."""

    max_skew: Annotated[int, Field(ge=1)] = 1
    """Greatest allowed difference in number of pods between two topology domains."""
    topology_key: QualifiedName
    """Node label whose values are the domains, such as topology.kubernetes.io/zone."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "ScheduleAnyway"
    """What to do with a pod that would break the spread."""
    label_selector: Verbatim | None = None
    """Which pods are counted; left out: the serving pods of the same revision."""


class Scheduling(SpecModel):
    """Where pods may run."""

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=32)] = Field(default_factory=dict)
    """Labels a node must have."""
    tolerations: Annotated[list[Toleration], Field(max_length=32)] = Field(default_factory=list)
    """Taints that are tolerated. The taint named as the GPU resource is tolerated without being listed."""
    affinity: Verbatim | None = None
    """Affinity as in a pod (core/v1 Affinity)."""
    topology_spread_constraints: Annotated[list[TopologySpreadConstraint], Field(max_length=8)] = Field(
        default_factory=list
    )
    """How serving pods spread; the gate is a single pod and ignores it."""
    priority_class_name: ObjectName | None = None
    """PriorityClass of serving pods."""
    runtime_class_name: ObjectName | None = None
    """RuntimeClass of serving pods, such as nvidia."""
