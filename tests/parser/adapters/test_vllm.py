"""The adapters in real vLLM code: everything in `inside/` and the public cases, run by each version's own Python.

`GEMMASERVE_VLLM_VERSIONS` says which: a list such as `0.24.0,0.33.0`, or `all`. The default is the oldest version of
each generation's road that the project serves.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vllm_env

CASES = Path(__file__).parents[1] / "cases" / "public.jsonl"
PARSER = "import sys; from gemmaserve_parser.cli import main; sys.exit(main(sys.argv[1:]))"
INSIDE = Path(__file__).with_name("inside")
DEFAULT = "0.20.2,0.32.0"
TEN_MINUTES = 600


def versions():
    chosen = os.environ.get("GEMMASERVE_VLLM_VERSIONS") or DEFAULT
    return vllm_env.VERSIONS if chosen == "all" else chosen.split(",")


@pytest.mark.vllm
@pytest.mark.timeout(TEN_MINUTES)
@pytest.mark.parametrize("version", versions())
def test_adapters(version):
    arguments = ["-m", "pytest", "-c", str(INSIDE / "pytest.ini"), str(INSIDE)]
    run = vllm_env.environment(version).run(*arguments, timeout=TEN_MINUTES)
    assert run.returncode == 0, f"with vLLM {version}:\n{run.stdout[-6000:]}\n{run.stderr[-2000:]}"


@pytest.mark.vllm
@pytest.mark.timeout(TEN_MINUTES)
@pytest.mark.parametrize("version", versions())
def test_public_cases(version):
    run = vllm_env.environment(version).run("-c", PARSER, "replay", str(CASES), timeout=TEN_MINUTES)
    assert run.stdout.startswith("through the core and adapter"), run.stderr[-2000:]
    wrong = [line for line in run.stdout.splitlines() if not line.startswith("right ")]
    assert run.returncode == 0, f"with vLLM {version}:\n" + "\n".join(wrong)
