"""One vLLM server of the stand-in model on a loopback port, as long as a context lasts."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import vllm_env
from answers import script

from localcluster.tinymodel import checkpoint

HERE = Path(__file__).resolve().parent
MODEL_NAME = "tiny-gemma4-scripted"
STREAMS = 1000
START_SECONDS = 1800
STOP_SECONDS = 30
ARGUMENTS = (
    f"--served-model-name={MODEL_NAME}",
    "--load-format=dummy",
    "--dtype=float32",
    "--enforce-eager",
    "--host=127.0.0.1",
    "--max-model-len=8192",
    f"--max-num-seqs={STREAMS}",
    "--enable-auto-tool-choice",
    "--reasoning-parser=gemma4",
    "--disable-uvicorn-access-log",
    "--logits-processors=scripted:ScriptedDecoding",
)
"""Both parsers' command line but for the parser's name; the reasoning parser's name is what the operator gives."""


@dataclass(frozen=True)
class Kind:
    """A server that is measured: vLLM's version, with our parser or with vLLM's own."""

    version: str
    ours: bool

    @property
    def name(self):
        return f"{self.version}, {'ours' if self.ours else 'upstream'}"

    @property
    def slug(self):
        return f"{self.version}-{'ours' if self.ours else 'upstream'}"


@contextlib.contextmanager
def serving(kind, work):
    """Start a server, wait until it answers, give its URL; stop it, and all that it started, at the end.

    Raises:
        RuntimeError: it ended or did not answer in time; the message names its log.
    """
    environment = vllm_env.environment(kind.version, whole=True)
    port, log = _free_port(), work / f"server-{kind.slug}.log"
    parser = "gemma4_atomic" if kind.ours else "gemma4"
    command = [str(environment.python), "-m", "vllm.entrypoints.cli.main", "serve", str(_model(work)), *ARGUMENTS]
    command += [f"--tool-call-parser={parser}", f"--port={port}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=_variables(environment, kind, work), cwd=work, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url, kind, log)
        yield url
    finally:
        _stop(process)


def _variables(environment, kind, work):
    """The server's environment. vLLM's own parser is had by telling vLLM to load no plugin, as if we were not there."""
    path = [work / "plugins", *(environment.path if kind.ours else ())]
    plugins = {} if kind.ours else {"VLLM_PLUGINS": ""}
    return {
        **environment.variables(),
        **plugins,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "SCRIPT": str(work / "script.json"),
        "VLLM_CACHE_ROOT": str(vllm_env.cache() / "serving"),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "INFO",
        "OMP_NUM_THREADS": "1",
        # Nothing is compiled for a model of two layers: finding out what this CPU can do takes longer than the rest.
        "TORCH_COMPILE_DISABLE": "1",
    }


def _model(work):
    """The stand-in's files, its script, and the plugin that makes it say what the script says."""
    plugins = work / "plugins"
    plugins.mkdir(exist_ok=True)
    for source in (HERE / "scripted.py", Path(checkpoint.__file__).with_name("forced_decoding.py")):
        shutil.copy(source, plugins)
    (work / "script.json").write_text(json.dumps(script()), encoding="utf-8")
    checkpoint.write_checkpoint(work / "model")
    return work / "model"


def _wait(process, url, kind, log):
    started = said = time.monotonic()
    while not _answers(url):
        now = time.monotonic()
        if process.poll() is not None or now - started > START_SECONDS:
            what = "ended" if process.poll() is not None else f"did not answer within {START_SECONDS} s"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"vLLM {kind.name}: the server {what}; its log is {log}:\n{tail}")
        if now - said > 20:
            said = now
            say(f"  starting vLLM {kind.name}: {now - started:.0f} s")
        time.sleep(1)
    say(f"  vLLM {kind.name} answers after {time.monotonic() - started:.0f} s")


def _answers(url):
    """Whether it is up, and is this server and not another program's on the same port."""
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as response:
            return json.load(response)["data"][0]["id"] == MODEL_NAME
    except (urllib.error.URLError, OSError, ValueError, LookupError):
        return False


def _stop(process):
    """End the server's process group, which is its alone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    # The engine may outlive the process that it belongs to: wait for the last of the group.
    for _ in range(STOP_SECONDS):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(1)


def _free_port():
    """A port below those that the system gives to whoever asks for any: vLLM binds it only seconds later."""
    while True:
        port = random.randint(20000, 29999)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def say(words):
    """Progress, on standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
