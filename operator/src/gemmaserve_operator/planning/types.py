"""What goes into a plan and what comes out of it: the seam between the pure core and the I/O.

`cluster/` and `runtime/` build a `Snapshot` from the store and carry out a `Plan`; `plan()` lies between and
touches nothing. All Kubernetes objects are plain dicts in the shape of the API server's JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the API server answered to the last attempt at a write, when it refused it."""

    code: int
    """HTTP status; 409 on creation: an object of that name exists that is not ours (it may bear none of our labels)."""
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One GemmaServe and everything of it that the store holds, at one moment.

    Children are those that carry the label `gemmaserve.dev/name` with the resource's name, whoever owns them:
    the planner decides by owner reference what is ours and what is somebody else's object of the same name.
    """

    resource: Json
    jobs: tuple[Json, ...] = ()
    deployments: tuple[Json, ...] = ()
    services: tuple[Json, ...] = ()
    pods: tuple[Json, ...] = ()
    endpoint_slices: tuple[Json, ...] = ()
    revision_records: tuple[Json, ...] = ()
    """ControllerRevisions: what revisions that have left were made from."""
    free_gates: int = 10
    """Gate Jobs that may still be started now, over all namespaces (`--max-concurrent-gates` less those running)."""
    verifications: Mapping[str, Json] | None = None
    """Passed verification records of this namespace by image digest (`sha256:...`), from any GemmaServe's gate Jobs."""
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    """Writes that were refused and not made since, by `KIND/NAME`; shown in the status with the API server's words."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of `body`, whole as we want it, under the operator's field manager."""

    body: Json
    why: str
    creates: bool = False
    """The store holds no such object. Carried out only if the API server holds none either: what is found there is
    a stranger's (it bears none of our labels) and becomes a refusal with code 409. A write that does not create
    names the object it is about by `body.metadata.uid`."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object, only if it still has this uid; its dependents go in the background."""

    api_version: str
    kind: str
    name: str
    uid: str
    why: str


Write = Apply | Delete


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event to be sent once, after the status that tells the same has been written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes to make, in this order, and the status to show.

    Every prefix of `writes` is a safe state: the process may die after any of them.
    An empty `writes` and an unchanged `status` mean that nothing is sent to the API server.
    """

    writes: tuple[Write, ...]
    status: Json
    """The whole status; compared with the resource's own, and written through the status subresource if it differs."""
    events: tuple[Event, ...] = ()
    requeue_after: float | None = None
    """Seconds after which time alone would change the plan (a deadline, a delay); None when only a change can."""
