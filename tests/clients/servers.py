"""A real vLLM with the stand-in model, and LiteLLM's proxy in front of it, on 127.0.0.1 while a block lasts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import scenarios
import vllm_env

from localcluster.tinymodel.checkpoint import write_checkpoint

ROOT = Path(__file__).resolve().parents[2]
MODEL = "gemma-4"
START_SECONDS = 900
STOP_SECONDS = 20
CONTEXT_TOKENS = 65536
"""One token a byte: room for the tools that an agent declares."""

_STAND_INS = (ROOT / "localcluster/src/localcluster/tinymodel", ROOT / "bench/servers")


class ServerError(RuntimeError):
    """A server did not start; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Server:
    """What is served.

    Attributes:
        parser: `gemmaserve` or `upstream`.
        version: vLLM's.
        interval: Tokens a chunk: 1, or more, as when a server is busy or decodes speculatively.
    """

    parser: str
    version: str
    interval: int

    def __str__(self) -> str:
        return f"{self.parser}-{self.version}-by-{self.interval}"


@dataclass(frozen=True)
class Served:
    """A server that runs: what it is, and its URL without `/v1`."""

    server: Server
    url: str


VERSIONS = ("0.20.2", "0.32.0")
INTERVALS = (1, 8)
SERVERS = tuple(
    Server(parser, version, interval)
    for parser in ("gemmaserve", "upstream")
    for version in VERSIONS
    for interval in INTERVALS
)


@contextlib.contextmanager
def vllm(server: Server, folder: Path) -> Iterator[str]:
    """The URL of that server, with the scripted stand-in model in it; `folder` takes its files and its log.

    Raises:
        ServerError: it did not start within a quarter of an hour.
    """
    environment = vllm_env.environment(server.version, whole=True)
    model = folder / "model"
    write_checkpoint(model)
    script = folder / "script.json"
    script.write_text(json.dumps(scenarios.script()), encoding="utf-8")
    parser = "gemma4_atomic" if server.parser == "gemmaserve" else "gemma4"
    port = free_port()
    command = [
        *[str(environment.python), "-m", "vllm.entrypoints.cli.main", "serve", str(model)],
        *["--host=127.0.0.1", f"--port={port}", f"--served-model-name={MODEL}", "--enable-auto-tool-choice"],
        *[f"--tool-call-parser={parser}", f"--reasoning-parser={parser}", f"--stream-interval={server.interval}"],
        *["--load-format=dummy", "--dtype=float32", "--enforce-eager", f"--max-model-len={CONTEXT_TOKENS}"],
        f"--hf-overrides={json.dumps({'max_position_embeddings': CONTEXT_TOKENS})}",
        "--logits-processors=scripted:ScriptedDecoding",
    ]
    variables = environment.variables() | {
        "SCRIPT": str(script),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "2",
    }
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], *map(str, _STAND_INS)])
    if server.parser == "upstream":
        variables["VLLM_PLUGINS"] = ""  # vLLM loads no plugin: ours is installed, and stays out
    with process(command, variables, folder / "vllm.log", f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def litellm(python: Path, url: str, folder: Path) -> Iterator[str]:
    """The URL of a LiteLLM proxy in front of the server at `url`.

    Raises:
        ServerError: it did not start.
    """
    config = folder / "litellm.yaml"
    parameters = {"model": f"hosted_vllm/{MODEL}", "api_base": f"{url}/v1", "api_key": "none"}
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": parameters}]}))
    port = free_port()
    command = [str(python.with_name("litellm")), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    variables = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the price list of the package, not the internet's
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # on 127.0.0.1, for these tests alone
    }
    ready = f"http://127.0.0.1:{port}/health/liveliness"
    with process([*command, "--telemetry", "False"], variables, folder / "litellm.log", ready):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def process(command: list[str], variables: dict[str, str], log: Path, ready: str) -> Iterator[None]:
    """Run a server until the block ends; it starts when `ready` answers 200."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            env=variables,
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(running, ready, log)
        yield
    finally:
        _stop(running)


def _stop(running: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started, which are a group of their own: vLLM's engine may outlive it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            try:
                os.killpg(running.pid, number if running.poll() is None else signal.SIGKILL)
            except ProcessLookupError:
                return
            time.sleep(0.5)


def _wait(running: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(ready, timeout=5).is_success:
                return
        time.sleep(0.5)
    said = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
    ended = "took too long" if running.poll() is None else f"ended with {running.returncode}"
    raise ServerError(f"{running.args[0]} {ended} before {ready} answered; {log} ends with:\n{said}")


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
