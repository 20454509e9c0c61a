"""The status of a GemmaServe: what the operator tells. Losing all of it loses nothing but history."""

from typing import Annotated, Final, Literal

from pydantic import Field

from gemmaserve_operator.api.base import ApiModel

MAX_FAILURES: Final = 5
_BY_TYPE: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

Phase = Literal["Verifying", "WaitingForCapacity", "Starting", "Serving", "RollingOut", "Degraded", "Failed"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]


class TestFailure(ApiModel):
    """One regression that failed."""

    name: str
    """Name of the regression."""
    message: str
    """What it found."""


class RuleFailure(ApiModel):
    """One rule that was broken."""

    name: str
    """Name of the rule, or `unfinished`, or `call-seen`; docs/toolstream.md has them."""
    message: str
    """Where and how, with the offending chunk."""


class ParserRecord(ApiModel):
    """What the parser regressions found in the revision's image."""

    job: str | None = None
    """The Job that ran them; for a digest that had passed before it may be another GemmaServe's."""
    parser: str | None = None
    """The tool-call parser they ran against."""
    passed: Count
    """Regressions that passed."""
    failed: Count
    """Regressions that failed."""
    total: Count
    """Regressions that ran."""
    parser_version: str | None = None
    """Version of gemmaserve-parser in the image."""
    vllm_version: str | None = None
    """Version of vLLM in the image."""
    started_at: Time | None = None
    """When they started."""
    finished_at: Time | None = None
    """When they ended."""
    failures: Annotated[list[TestFailure], Field(max_length=MAX_FAILURES)] = Field(default_factory=list)
    """The first failures."""
    error: str | None = None
    """Why there is no report, when the gate ended without one."""


class LiveRecord(ApiModel):
    """What requests to the revision's pods found."""

    job: str | None = None
    """The Job that sent them."""
    parser: str | None = None
    """The tool-call parser that the pods were started with."""
    passed: Count
    """Requests whose answers broke no rule."""
    failed: Count
    """Requests whose answers broke a rule."""
    inconclusive: Count = 0
    """Requests without a tool call to judge: the model made none, or its context was too short for the question."""
    total: Count
    """Requests that were to be sent."""
    parser_version: str | None = None
    """Version of gemmaserve-parser in the image."""
    vllm_version: str | None = None
    """Version of vLLM, as the pods say."""
    started_at: Time | None = None
    """When the first was sent."""
    finished_at: Time | None = None
    """When the last was answered."""
    failures: Annotated[list[RuleFailure], Field(max_length=MAX_FAILURES)] = Field(default_factory=list)
    """The first rules that were broken."""
    error: str | None = None
    """Why there is no report, when the check ended without one."""


class VerificationStatus(ApiModel):
    """What the gates found."""

    parser: ParserRecord
    """Parser regressions."""
    live: LiveRecord | None = None
    """Requests to the revision's own pods; left out while there were none."""


class RevisionStatus(ApiModel):
    """One revision."""

    name: str
    """The revision: ten hexadecimal digits."""
    image: str
    """Its image, with the digest once that is known."""
    created_at: Time | None = None
    """When its first object was made."""
    verification: VerificationStatus | None = None
    """What the gates found."""


class HistoryEntry(ApiModel):
    """A past revision."""

    revision: str
    """The revision."""
    image: str
    """Its image, with the digest if that was known."""
    outcome: Literal["Active", "Replaced", "Failed", "Superseded"]
    """How it ended; Active while it serves."""
    reason: str
    """Reason of the outcome."""
    started_at: Time
    """When it became the candidate."""
    finished_at: Time | None = None
    """When it became what the outcome says."""


class ConditionStatus(ApiModel):
    """A condition by the Kubernetes conventions."""

    type: str
    """Available, Ready, Progressing, ParserVerified, LiveVerified or Degraded."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """Why, in a word; docs/troubleshooting.md has a section for each."""
    message: str
    """Why, in a sentence with the next step."""
    last_transition_time: Time
    """When status last changed."""
    observed_generation: int
    """Generation of the spec this was seen for."""


class Summary(ApiModel):
    """Columns of `kubectl get`."""

    replicas: str
    """Ready and asked serving pods, such as 1/2."""
    verified: str | None = None
    """Passed and run regressions, such as 61/61."""


class GemmaServeStatus(ApiModel):
    """What the operator has observed."""

    observed_generation: int
    """Generation of the spec that this status is about."""
    phase: Phase
    """Where it stands, in a word."""
    url: str | None = None
    """Base URL of the OpenAI API inside the cluster, once a revision serves."""
    replicas: Count
    """Serving pods of the active revision."""
    ready_replicas: Count
    """Ready serving pods of the active revision."""
    selector: str | None = None
    """Selects the active revision's serving pods, for autoscalers."""
    active_revision: RevisionStatus | None = None
    """The revision that receives traffic."""
    candidate_revision: RevisionStatus | None = None
    """The revision that is to replace it."""
    history: Annotated[list[HistoryEntry], Field(max_length=51)] = Field(default_factory=list)
    """Past revisions, newest first."""
    conditions: Annotated[list[ConditionStatus], Field(json_schema_extra=_BY_TYPE)] = Field(default_factory=list)
    """What holds, and why."""
    summary: Summary
    """Columns of `kubectl get`."""
