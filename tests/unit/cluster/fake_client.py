"""A stand-in for the API client: the API server's rules of names, uids and resourceVersions, in memory."""

import copy
import itertools

from gemmaserve_operator.cluster.client import ApiError, Listing
from gemmaserve_operator.cluster.kinds import GEMMASERVE, JOB


class FakeClient:
    """Holds objects by kind, namespace and name.

    Attributes:
        calls: Every request as (verb, plural, name).
        failures: Raised by the next requests of a verb, before anything happens.
        lost: Verbs whose next answer is lost: the request is carried out, and then raises.
    """

    def __init__(self):
        self.objects = {}
        self.calls = []
        self.failures = {}
        self.lost = set()
        self._versions = itertools.count(2)
        self._uids = itertools.count(1)

    def put(self, kind, obj):
        """Somebody else's write."""
        metadata = obj["metadata"]
        key = (kind, metadata["namespace"], metadata["name"])
        held = self.objects.get(key)
        given = {"uid": held["metadata"]["uid"] if held else f"uid-{next(self._uids)}", "generation": 1}
        version = {"resourceVersion": str(next(self._versions))}
        self.objects[key] = copy.deepcopy(obj | {"metadata": given | metadata | version})
        return copy.deepcopy(self.objects[key])

    def of(self, kind):
        """The objects of one kind, in the order in which they were made."""
        return [obj for (held, _, _), obj in self.objects.items() if held == kind]

    def writes(self):
        return [call for call in self.calls if call[0] not in ("get", "list")]

    async def get(self, kind, namespace, name):
        self._call("get", kind, name)
        return self._answer("get", copy.deepcopy(self._held(kind, namespace, name)))

    async def list_all(self, kind, namespace):
        self._call("list", kind, namespace)
        items = [
            copy.deepcopy(obj)
            for (held, where, _), obj in self.objects.items()
            if held == kind and namespace in (None, where)
        ]
        return self._answer("list", Listing(items, next(self._versions)))

    async def apply(self, kind, body, *, subresource=None):
        metadata = body["metadata"]
        self._call("apply" if subresource is None else f"apply {subresource}", kind, metadata["name"])
        held = self.objects.get((kind, metadata["namespace"], metadata["name"]))
        if held is None and (metadata.get("uid") or subresource):
            raise ApiError(404 if subresource else 409, "there is no such object")
        if held is not None:
            given = ("resourceVersion",) if subresource else ("resourceVersion", "uid")
            if any(metadata.get(field) not in (None, held["metadata"][field]) for field in given):
                raise ApiError(409, "the object is another", reason="Conflict")
        merged = (held or {}) | {key: value for key, value in body.items() if key != "metadata"}
        owned = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
        return self._answer("apply", self.put(kind, merged | {"metadata": (held or {}).get("metadata", {}) | owned}))

    async def merge_patch(self, kind, namespace, name, patch):
        self._call("patch", kind, name)
        held = copy.deepcopy(self._held(kind, namespace, name))
        labels = (held["metadata"].get("labels") or {}) | patch["metadata"]["labels"]
        return self._answer("patch", self.put(kind, held | {"metadata": held["metadata"] | {"labels": labels}}))

    async def create(self, kind, body):
        metadata = body["metadata"]
        self._call("create", kind, metadata["name"])
        if (kind, metadata["namespace"], metadata["name"]) in self.objects:
            raise ApiError(409, "it exists", reason="AlreadyExists")
        return self._answer("create", self.put(kind, body))

    async def replace(self, kind, body):
        metadata = body["metadata"]
        self._call("update", kind, metadata["name"])
        held = self._held(kind, metadata["namespace"], metadata["name"])
        if held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiError(409, "it has changed", reason="Conflict")
        return self._answer("update", self.put(kind, body))

    async def delete(self, kind, namespace, name, uid):
        self._call("delete", kind, name)
        held = self._held(kind, namespace, name)
        if held["metadata"]["uid"] != uid:
            raise ApiError(409, "the uid is another", reason="Conflict")
        del self.objects[kind, namespace, name]
        return self._answer("delete", {"kind": "Status", "status": "Success"})

    def _held(self, kind, namespace, name):
        held = self.objects.get((kind, namespace, name))
        if held is None:
            raise ApiError(404, "there is no such object", reason="NotFound")
        return held

    def _call(self, verb, kind, name):
        self.calls.append((verb, kind.plural, name))
        if self.failures.get(verb):
            raise self.failures[verb].pop(0)

    def _answer(self, verb, answer):
        if verb in self.lost:
            self.lost.discard(verb)
            raise ApiError(0, "the answer is lost")
        return answer


def gemmaserve(name="gemma4", namespace="team", **changes):
    spec = {"model": {"uri": "hf://a/b"}, "image": {"repository": "r", "digest": "sha256:" + "a" * 64}}
    metadata = {"name": name, "namespace": namespace, "generation": 1}
    kind = {"apiVersion": GEMMASERVE.api_version, "kind": GEMMASERVE.kind}
    return kind | {"metadata": metadata, "spec": spec | changes}


def child(kind=JOB, name="gemma4-x-gate", *, owner="gemma4", owner_uid="uid-1", namespace="team", **metadata):
    reference = {"apiVersion": GEMMASERVE.api_version, "kind": GEMMASERVE.kind, "uid": owner_uid, "controller": True}
    labels = {"gemmaserve.dev/name": owner} if owner else {}
    given = {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [reference]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": given | metadata, "spec": {}}
