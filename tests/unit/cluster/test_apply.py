"""Writes against a stand-in for the API server: what each answer means, and what the store learns from it."""

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.apply import StaleStoreError, Writer
from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.kinds import GEMMASERVE, JOB, SERVICE
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.planning import Apply, Delete

from .fake_client import child, gemmaserve

KEY = ("team", "gemma4")


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def resource(client, store):
    made = client.put(GEMMASERVE, gemmaserve())
    store.put(GEMMASERVE, made)
    return made


@pytest.fixture
def writer(client, store):
    return Writer(client, store)


def update(obj, **spec):
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return Apply(obj | {"metadata": metadata, "spec": spec}, "a difference")


async def test_creation_is_in_the_store_at_once(writer, resource, store):
    assert await writer.carry_out(resource, Apply(child(), "create", creates=True)) is None
    assert [job["metadata"]["uid"] for job in store.snapshot(KEY, free_gates=1).jobs] == ["uid-2"]


async def test_creation_never_touches_a_strangers_object(writer, resource, client, store):
    stranger = client.put(SERVICE, child(SERVICE, "gemma4", owner=None, owner_uid="theirs"))
    refusal = await writer.carry_out(resource, Apply(child(SERVICE, "gemma4"), "create", creates=True))
    assert refusal.code == 409
    assert client.of(SERVICE) == [stranger]
    assert store.snapshot(KEY, free_gates=1).services == ()


async def test_creation_finds_what_the_store_had_not_seen_yet(writer, resource, client, store):
    """Such as after an answer that was lost."""
    client.put(JOB, child())
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, Apply(child(), "create", creates=True))
    assert len(store.snapshot(KEY, free_gates=1).jobs) == 1
    assert [verb for verb, _, _ in client.writes()] == ["apply"]


async def test_creation_gives_labels_back_to_what_is_ours(writer, resource, client, store):
    client.put(SERVICE, child(SERVICE, "gemma4", owner=None, annotations={"note": "kept"}))
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, Apply(child(SERVICE, "gemma4"), "create", creates=True))
    (service,) = store.snapshot(KEY, free_gates=1).services
    assert service["metadata"]["labels"] == {names.LABEL_NAME: "gemma4"}
    assert service["metadata"]["annotations"] == {"note": "kept"}


async def test_creation_of_what_is_just_going(writer, resource, client):
    client.failures["apply"] = [ApiError(409, "it exists")]
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, Apply(child(), "create", creates=True))


async def test_update_of_another_object_of_the_name_is_not_made(writer, resource, client, store):
    old = client.put(JOB, child())
    store.put(JOB, old)
    client.objects.clear()
    new = client.put(JOB, child(uid="another"))
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, update(old, parallelism=2))
    assert client.of(JOB) == [new]
    (held,) = store.snapshot(KEY, free_gates=1).jobs
    assert held["metadata"]["uid"] == "another"


async def test_update_of_what_is_gone(writer, resource, client, store):
    old = client.put(JOB, child())
    store.put(JOB, old)
    del client.objects[JOB, "team", "gemma4-x-gate"]
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, update(old, parallelism=2))
    assert store.snapshot(KEY, free_gates=1).jobs == ()


@pytest.mark.parametrize("code", [400, 403, 404, 422])
async def test_refusals_are_handed_back_with_the_servers_words(writer, resource, client, code):
    client.failures["apply"] = [ApiError(code, "quota exceeded")]
    refusal = await writer.carry_out(resource, Apply(child(), "create", creates=True))
    assert (refusal.code, refusal.message) == (code, "quota exceeded")


@pytest.mark.parametrize("code", [0, 401, 429, 500, 503])
async def test_troubles_are_no_refusals(writer, resource, client, code):
    client.failures["apply"] = [ApiError(code, "trouble")]
    with pytest.raises(ApiError):
        await writer.carry_out(resource, Apply(child(), "create", creates=True))


async def test_a_webhook_that_does_not_answer_is_a_refusal(writer, resource, client):
    """It stands until somebody mends the webhook, and concerns this write only."""
    client.failures["apply"] = [ApiError(500, 'Internal error occurred: failed calling webhook "w.example": timeout')]
    refusal = await writer.carry_out(resource, Apply(child(), "create", creates=True))
    assert refusal.code == 500


async def test_a_body_that_breaks_the_schema_is_a_refusal_although_it_is_a_500(writer, resource, client):
    words = "failed to create typed patch object (a/b; batch/v1, Kind=Job): .spec.affinity: expected map, got &{x}"
    client.failures["apply"] = [ApiError(500, words)]
    refusal = await writer.carry_out(resource, Apply(child(), "create", creates=True))
    assert refusal.message == words


def deletion(obj):
    return Delete("batch/v1", "Job", obj["metadata"]["name"], obj["metadata"]["uid"], "not wanted")


async def test_deletion_is_in_the_store_at_once(writer, resource, client, store):
    job = client.put(JOB, child())
    store.put(JOB, job)
    assert await writer.carry_out(resource, deletion(job)) is None
    assert client.of(JOB) == []
    assert store.snapshot(KEY, free_gates=1).jobs == ()


async def test_deletion_that_finalizers_hold_up(writer, resource, client, store, monkeypatch):
    job = client.put(JOB, child())
    store.put(JOB, job)

    async def answer(*_):
        return client.put(JOB, job | {"metadata": job["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    monkeypatch.setattr(client, "delete", answer)
    await writer.carry_out(resource, deletion(job))
    (held,) = store.snapshot(KEY, free_gates=1).jobs
    assert held["metadata"]["deletionTimestamp"]


async def test_deletion_of_what_is_gone_or_another(writer, resource, client, store):
    job = client.put(JOB, child())
    store.put(JOB, job)
    client.objects.clear()
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, deletion(job))
    assert store.snapshot(KEY, free_gates=1).jobs == ()

    successor = client.put(JOB, child(uid="another"))
    with pytest.raises(StaleStoreError):
        await writer.carry_out(resource, deletion(job))
    assert client.of(JOB) == [successor]


async def test_status_is_applied_whole_and_stored(writer, resource, client, store):
    await writer.write_status(resource, {"phase": "Verifying"})
    assert client.writes() == [("apply status", "gemmaserves", "gemma4")]
    assert store.snapshot(KEY, free_gates=1).resource["status"] == {"phase": "Verifying"}


async def test_status_of_what_is_gone(writer, resource, client, store):
    client.objects.clear()
    with pytest.raises(StaleStoreError):
        await writer.write_status(resource, {"phase": "Verifying"})
    assert store.snapshot(KEY, free_gates=1) is None


async def test_status_that_is_refused(writer, resource, client):
    client.failures["apply status"] = [ApiError(422, "no such field")]
    with pytest.raises(ApiError, match="no such field"):
        await writer.write_status(resource, {"phase": "Verifying"})
