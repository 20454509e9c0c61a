"""Carrying out a plan's writes, and learning from the API server's answers."""

from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.kinds import GEMMASERVE, WRITTEN, Json, Kind
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.planning.objects import owned_by
from gemmaserve_operator.planning.types import Apply, Delete, Refusal, Write

_NO_OBJECT: Final = "1"
"""A resourceVersion that no object has: the store's first write gets 2. An apply that names it creates, or gets 409."""

_WEBHOOK_DOWN: Final = "failed calling webhook"


class StaleStoreError(Exception):
    """The store was behind the API server; it has been put right, and the plan must be made again."""


class Writer:
    """Writes objects one by one. Its answers go into the store, so that the next plan sees them."""

    def __init__(self, client: Client, store: Store) -> None:
        self._client = client
        self._store = store

    async def carry_out(self, resource: Json, write: Write) -> Refusal | None:
        """Make one write of a GemmaServe's plan.

        Returns:
            What the API server says against it, when it will say so again until something changes; None when done.

        Raises:
            StaleStoreError: What the plan was made from was no longer so.
            ApiError: Of another kind than a refusal: no answer, server trouble, credentials.
        """
        if isinstance(write, Apply):
            return await self._apply(resource, write)
        return await self._delete(resource, write)

    async def write_status(self, resource: Json, status: Json) -> None:
        """Write the whole status; fields that are gone from it are removed.

        It holds for the very version that was planned from. (A uid would not do: of a custom resource's status the API
        server accepts any, and so the status of a deleted resource would go to a new one of its name.)

        Raises:
            StaleStoreError: The resource has changed or is gone, or is another one of the same name.
            ApiError: Anything else.
        """
        metadata = {field: resource["metadata"][field] for field in ("name", "namespace", "resourceVersion")}
        body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "status": status}
        try:
            answer = await self._client.apply(GEMMASERVE, body, subresource="status")
        except ApiError as error:
            if error.code in (404, 409):
                await self._look_again(GEMMASERVE, metadata["namespace"], metadata["name"], resource["metadata"]["uid"])
            raise
        self._store.put(GEMMASERVE, answer)

    async def _apply(self, resource: Json, write: Apply) -> Refusal | None:
        kind = WRITTEN[write.body["kind"]]
        body = write.body
        if write.creates:
            body = body | {"metadata": body["metadata"] | {"resourceVersion": _NO_OBJECT}}
        try:
            answer = await self._client.apply(kind, body)
        except ApiError as error:
            if error.code == 409 and write.creates:
                return await self._name_taken(resource, kind, write.body)
            if error.code == 409:
                metadata = body["metadata"]
                await self._look_again(kind, metadata["namespace"], metadata["name"], metadata["uid"])
            return _refusal(error)
        self._store.put(kind, answer)
        return None

    async def _name_taken(self, resource: Json, kind: Kind, body: Json) -> Refusal:
        """What the store does not show is there: a stranger's, or ours, unseen yet or without its labels."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            found = await self._client.get(kind, namespace, name)
        except ApiError as error:
            if error.code == 404:
                raise StaleStoreError(f"{kind.kind} {name} was there and is gone") from error
            raise
        if not owned_by(found, resource["metadata"]["uid"]):
            return Refusal(409, f"{kind.kind} {name} exists and belongs to something else")
        if kind.owner_key(found) != kind.owner_key(body):
            labels = {"metadata": {"labels": body["metadata"]["labels"], "uid": found["metadata"]["uid"]}}
            found = await self._client.merge_patch(kind, namespace, name, labels)
        self._store.put(kind, found)
        raise StaleStoreError(f"{kind.kind} {name} is there already")

    async def _delete(self, resource: Json, write: Delete) -> Refusal | None:
        kind, namespace = WRITTEN[write.kind], resource["metadata"]["namespace"]
        try:
            answer = await self._client.delete(kind, namespace, write.name, write.uid)
        except ApiError as error:
            if error.code in (404, 409):
                await self._look_again(kind, namespace, write.name, write.uid)
            return _refusal(error)
        if answer.get("kind") == "Status":
            self._store.forget(kind, namespace, write.name, write.uid)
        else:
            # Finalizers keep it for now.
            self._store.put(kind, answer)
        return None

    async def _look_again(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Take into the store what there is under a name, and give up the present plan."""
        try:
            found = await self._client.get(kind, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            self._store.forget(kind, namespace, name, uid)
            raise StaleStoreError(f"{kind.kind} {name} is gone") from error
        if found["metadata"]["uid"] != uid:
            self._store.forget(kind, namespace, name, uid)
        if kind.owner_key(found) is not None:
            self._store.put(kind, found)
        raise StaleStoreError(f"{kind.kind} {name} has changed")


def _refusal(error: ApiError) -> Refusal:
    """A refusal, unless the error is none: then it goes on up.

    401 is about our credentials and not about the write. A webhook that does not answer is a 500, but it is about the
    write, and somebody has to do something about it.
    """
    if (error.passing and _WEBHOOK_DOWN not in error.message) or error.code == 401:
        raise error
    return Refusal(error.code, error.message)
