"""One operator at a time: a Lease, held from before the first write until the process ends."""

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gemmaserve_operator.cluster.backoff import jitter
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.kinds import LEASE, Json

logger = logging.getLogger(__name__)

_MICROS: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class LeaseLostError(Exception):
    """Another process may lead by now: this one must not write any more."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, as client-go has them: the holder gives up before others may take over."""

    duration: float = 15.0
    """For how long others leave an unrenewed lease alone."""
    renew_deadline: float = 10.0
    """How long the holder tries to renew before it takes the lease for lost."""
    retry: float = 2.0
    """Between two looks or renewals."""


class Lease:
    """A Lease that this process wants or holds.

    Whether another's lease has run out is judged by how long it has not changed before our eyes, never by comparing
    its times with our clock: clocks of two machines differ.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timing = timing or Timing()
        self._clock = clock
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
        self._held: Json | None = None
        self._seen: tuple[str, float] = ("", 0.0)

    async def acquire(self) -> None:
        """Wait until this process holds the lease.

        Raises:
            ApiError: Leases cannot be read or written, and that will not pass.
        """
        logger.info("waiting for lease %s/%s as %s", self._namespace, self._name, self.identity)
        while True:
            if await self._try_to_acquire():
                break
            await asyncio.sleep(self._timing.retry * jitter(0.8, 1.2))
        logger.info("holding lease %s/%s", self._namespace, self._name)

    async def keep(self) -> None:
        """Renew the lease for as long as that works.

        Raises:
            LeaseLostError: It could not be renewed in time, or another has taken it.
        """
        renewed = self._clock()
        while True:
            await asyncio.sleep(self._timing.retry)
            start = self._clock()
            left = renewed + self._timing.renew_deadline - start
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    held = await self._take()
            except TimeoutError:
                break
            except ApiError as error:
                logger.warning("lease %s/%s not renewed: %s", self._namespace, self._name, error)
                continue
            if not held:
                break
            renewed = start
        raise LeaseLostError(f"lease {self._namespace}/{self._name} is lost")

    async def release(self) -> None:
        """Let a successor take over at once; best effort."""
        if self._held is None:
            return
        spec = self._held["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._client.replace(LEASE, self._held | {"spec": spec})
        except ApiError as error:
            logger.info("lease not released: %s", error)

    async def _try_to_acquire(self) -> bool:
        try:
            return await self._take()
        except ApiError as error:
            # 409: another was faster; looked at again like what may pass.
            if error.code != 409 and not error.passing:
                raise
            logger.info("lease %s/%s: %s", self._namespace, self._name, error)
            return False

    async def _take(self) -> bool:
        """Take or renew the lease; False when it is another's."""
        try:
            lease = await self._client.get(LEASE, self._namespace, self._name)
        except ApiError as error:
            if error.code != 404:
                raise
            self._held = await self._client.create(LEASE, self._build(None))
            return True
        if not self._may_take(lease):
            return False
        self._held = await self._client.replace(LEASE, self._build(lease))
        return True

    def _may_take(self, lease: Json) -> bool:
        spec, version = lease["spec"], lease["metadata"]["resourceVersion"]
        if spec.get("holderIdentity") in (self.identity, "", None):
            return True
        if version != self._seen[0]:
            self._seen = (version, self._clock())
        duration = float(spec.get("leaseDurationSeconds") or self._timing.duration)
        return self._clock() - self._seen[1] > duration

    def _build(self, old: Json | None) -> Json:
        now = datetime.now(UTC).strftime(_MICROS)
        before = old["spec"] if old else {}
        mine = before.get("holderIdentity") == self.identity
        metadata = old["metadata"] if old else {"namespace": self._namespace, "name": self._name}
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._timing.duration)),
                "acquireTime": before.get("acquireTime") if mine else now,
                "renewTime": now,
                "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if mine or old is None else 1),
            },
        }
