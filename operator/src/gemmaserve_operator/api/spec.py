"""The spec of a GemmaServe: what a user writes. Docstrings of fields become the text of `kubectl explain`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gemmaserve_operator.api.base import Rule, SpecModel
from gemmaserve_operator.api.families import FAMILIES
from gemmaserve_operator.api.fields import LIST_BY_NAME, ObjectName, QualifiedName, Quantity
from gemmaserve_operator.api.model import Model
from gemmaserve_operator.api.owned import ARGUMENT_RULES, ENV_RULES
from gemmaserve_operator.api.quantity import parse_quantity
from gemmaserve_operator.api.scheduling import Scheduling

ParserName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.]*$")]
Seconds = Annotated[int, Field(ge=0, le=604800)]


class LocalObjectReference(SpecModel):
    """An object in the same namespace."""

    name: ObjectName
    """Name of the object."""


class Image(SpecModel):
    """The serving image: a vLLM image with the GemmaServe parser, by digest or by tag."""

    repository: Annotated[
        str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9:/]*[A-Za-z0-9])?$")
    ]
    """Registry and path without tag and digest, such as registry.example/gemmaserve-vllm."""
    digest: Annotated[str, Field(max_length=71, pattern=r"^sha256:[a-f0-9]{64}$")] | None = None
    """Digest of the image, sha256:...; either this or a tag."""
    tag: Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")] | None = None
    """Tag of the image; the parser gate resolves it once to a digest, which all pods of the revision then run."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When nodes pull the image. The gate of a tag always pulls, unless this is Never."""
    pull_secrets: Annotated[list[LocalObjectReference], Field(max_length=8, json_schema_extra=LIST_BY_NAME)] = Field(
        default_factory=list
    )
    """Secrets with registry credentials."""

    RULES: ClassVar = (
        Rule(
            cel="has(self.digest) != has(self.tag)",
            check=lambda self: (self.digest is None) != (self.tag is None),
            message="set exactly one of spec.image.digest and spec.image.tag",
        ),
    )

    @property
    def reference(self) -> str:
        """The image as written, as a container runtime reads it."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


class EnvVar(SpecModel):
    """An environment variable of the serving container and of the gate."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)] = ""
    """Its value, as it is."""


class Engine(SpecModel):
    """How vLLM runs the model."""

    family: Literal["gemma4", "harmony"] = "gemma4"
    """Model family, which decides the parsers: gemma4, or harmony for gpt-oss."""
    tool_call_parser: (
        Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None
    ) = None
    """vLLM tool-call parser; default by family. It is the one the parser gate verifies."""
    reasoning_parser: (
        Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] | None
    ) = None
    """vLLM reasoning parser; default by family."""
    max_model_len: Annotated[int, Field(ge=1)] | None = None
    """Longest context in tokens; left out: what the model declares."""
    args: Annotated[list[Annotated[str, Field(min_length=1, max_length=1024)]], Field(max_length=64)] = Field(
        default_factory=list
    )
    """Further arguments of `vllm serve`. Those that a field of this resource stands for are refused."""
    env: Annotated[list[EnvVar], Field(max_length=64, json_schema_extra=LIST_BY_NAME)] = Field(default_factory=list)
    """Further environment variables. Those that a field of this resource stands for are refused."""

    RULES: ClassVar = (*ARGUMENT_RULES, *ENV_RULES)

    @property
    def effective_tool_call_parser(self) -> str:
        """As written, else the family's."""
        return self.tool_call_parser or FAMILIES[self.family].tool_call_parser

    @property
    def effective_reasoning_parser(self) -> str:
        """As written, else the family's."""
        return self.reasoning_parser or FAMILIES[self.family].reasoning_parser


class Parallelism(SpecModel):
    """How one replica spreads the model over its GPUs."""

    tensor: Annotated[int, Field(ge=1, le=64)] = 1
    """Tensor parallel size."""
    pipeline: Annotated[int, Field(ge=1, le=64)] = 1
    """Pipeline parallel size."""


class Gpu(SpecModel):
    """The GPUs of one replica."""

    resource: QualifiedName = "nvidia.com/gpu"
    """Extended resource that stands for a GPU."""
    count: Annotated[int, Field(ge=0, le=64)] | None = None
    """GPUs of one replica; default parallelism.tensor * parallelism.pipeline. 0 serves on the CPU."""


Amounts = Annotated[dict[str, Quantity], Field(max_length=16)]


def _within_limits(resources: "Resources") -> bool:
    return all(
        parse_quantity(amount) <= parse_quantity(resources.limits[name])
        for name, amount in resources.requests.items()
        if name in resources.limits
    )


class Resources(SpecModel):
    """What one serving pod gets."""

    gpu: Gpu = Field(default_factory=Gpu)
    """GPUs of one replica."""
    requests: Amounts = Field(default_factory=dict)
    """Requests of the serving container by resource name, such as cpu: "8" and memory: 64Gi."""
    limits: Amounts = Field(default_factory=dict)
    """Limits of the serving container by resource name."""

    RULES: ClassVar = (
        Rule(
            cel="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || "
            "!isQuantity(string(self.requests[k])) || !isQuantity(string(self.limits[k])) || "
            "quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",
            check=_within_limits,
            message="each of spec.resources.requests must be at most the limit of the same name",
        ),
        Rule(
            cel="!(has(self.requests) && self.gpu.resource in self.requests) && "
            "!(has(self.limits) && self.gpu.resource in self.limits)",
            check=lambda self: self.gpu.resource not in {*self.requests, *self.limits},
            message="set GPUs in spec.resources.gpu.count, not in requests or limits",
        ),
    )


class Cache(SpecModel):
    """Where downloaded weights and compiled kernels are kept."""

    claim: ObjectName | None = None
    """PersistentVolumeClaim to keep them in; left out: an emptyDir that goes with the pod."""


class Storage(SpecModel):
    """Volumes of serving pods."""

    cache: Cache = Field(default_factory=Cache)
    """Cache of weights and compiled kernels."""
    shared_memory: Quantity = "8Gi"
    """Size limit of /dev/shm, which tensor parallel workers talk through. It counts as the pod's memory when used."""


class ParserVerification(SpecModel):
    """The parser gate. It is always on."""

    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 600
    """How long one pod of the gate may take on its node, the image's pull included, in seconds."""


class LiveVerification(SpecModel):
    """The live gate: the revision's own pods are asked for tool calls, and every client must get them whole."""

    enabled: bool = True
    """False lets a revision receive traffic unchecked: for a model that calls no tools."""
    requests: Annotated[int, Field(ge=1, le=10000)] = 16
    """How many requests are sent; chat completions, streams first."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    """How many of them at a time."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """How long all of them may take, in seconds."""


class Verification(SpecModel):
    """The gates a revision passes before it receives traffic."""

    parser: ParserVerification = Field(default_factory=ParserVerification)
    """Parser regressions run inside the serving image."""
    live: LiveVerification = Field(default_factory=LiveVerification)
    """Requests to the revision's pods, once they are ready and before traffic moves to them."""


class Rollout(SpecModel):
    """How a new revision takes over. Nothing here makes a new revision."""

    strategy: Literal["BlueGreen", "Recreate"] = "BlueGreen"
    """BlueGreen starts the new revision beside the old one; Recreate stops the old one first. Both after the gate."""
    on_insufficient_capacity: Literal["Wait", "Recreate"] = "Wait"
    """When GPUs are short for both: Wait for them, or after capacityTimeoutSeconds stop the old revision."""
    capacity_timeout_seconds: Seconds = 900
    """How long to wait for GPUs before onInsufficientCapacity: Recreate acts, in seconds."""
    progress_deadline_seconds: Annotated[int, Field(ge=60, le=604800)] = 3600
    """How long a revision may take from being scheduled to being ready, in seconds."""
    scale_down_delay_seconds: Seconds = 30
    """How long the old revision stays after traffic has moved, in seconds."""
    drain_timeout_seconds: Annotated[int, Field(ge=0, le=86400)] = 300
    """How long requests in flight may take to finish when a pod stops, in seconds; holds from the next revision on."""
    paused: bool = False
    """Stops before the next step of a rollout; what serves goes on serving."""


class RoutingService(SpecModel):
    """The Service that clients use."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Type of the Service."""
    port: Annotated[int, Field(ge=1, le=65535)] = 80
    """Port of the Service."""


class Routing(SpecModel):
    """How clients reach the model."""

    service: RoutingService = Field(default_factory=RoutingService)
    """The Service, named as the resource."""


def _gpus_fit(spec: "RevisionSpec") -> bool:
    return spec.parallelism.tensor * spec.parallelism.pipeline == max(spec.gpu_count, 1)


class RevisionSpec(SpecModel):
    """The part of the spec that changes a serving pod: a change of any of it makes a new revision."""

    model: Model
    """The model."""
    image: Image
    """The serving image."""
    engine: Engine = Field(default_factory=Engine)
    """How vLLM runs the model."""
    parallelism: Parallelism = Field(default_factory=Parallelism)
    """How one replica spreads over its GPUs; tensor * pipeline must equal resources.gpu.count."""
    resources: Resources = Field(default_factory=Resources)
    """What one serving pod gets."""
    scheduling: Scheduling = Field(default_factory=Scheduling)
    """Where pods may run."""
    storage: Storage = Field(default_factory=Storage)
    """Volumes of serving pods."""
    startup_timeout_seconds: Annotated[int, Field(ge=10, le=86400)] = 1800
    """How long a serving container may take to load the model before it is started again, in seconds."""

    RULES: ClassVar = (
        Rule(
            cel="self.parallelism.tensor * self.parallelism.pipeline == (!has(self.resources.gpu.count) ? "
            "self.parallelism.tensor * self.parallelism.pipeline : "
            "(self.resources.gpu.count > 0 ? self.resources.gpu.count : 1))",
            check=_gpus_fit,
            message="spec.parallelism.tensor * spec.parallelism.pipeline must equal spec.resources.gpu.count "
            "(or 1 when that is 0): change one, or leave spec.resources.gpu.count out",
        ),
    )

    @property
    def gpu_count(self) -> int:
        """GPUs of one replica: as written, else as many as the parallelism needs."""
        count = self.resources.gpu.count
        return self.parallelism.tensor * self.parallelism.pipeline if count is None else count


class GemmaServeSpec(RevisionSpec):
    """What is to be served, and how."""

    replicas: Annotated[int, Field(ge=0, le=10000)] = 1
    """Number of serving pods; also what the scale subresource and autoscalers set."""
    verification: Verification = Field(default_factory=Verification)
    """The gates a revision passes before it receives traffic."""
    rollout: Rollout = Field(default_factory=Rollout)
    """How a new revision takes over."""
    routing: Routing = Field(default_factory=Routing)
    """How clients reach the model."""
    revision_history_limit: Annotated[int, Field(ge=0, le=50)] = 5
    """How many past revisions are kept, with their gates' Jobs and what they were made from, to read and to go back."""
