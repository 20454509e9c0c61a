"""The trained stand-in in the Python of a vLLM environment: `inside/` holds what is tested."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import vllm_env

INSIDE = Path(__file__).with_name("inside")
TEN_MINUTES = 600


@pytest.mark.vllm
@pytest.mark.timeout(TEN_MINUTES)
def test_trained_model():
    environment = vllm_env.environment(vllm_env.BASE_VERSION, whole=True)
    variables = environment.variables() | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    variables["PYTHONPATH"] += os.pathsep + str(vllm_env.ROOT / "localcluster" / "src")
    command = [str(environment.python), "-m", "pytest", "-c", str(INSIDE / "pytest.ini"), str(INSIDE)]
    run = subprocess.run(
        command, env=variables, cwd=vllm_env.ROOT, capture_output=True, text=True, timeout=TEN_MINUTES, check=False
    )
    assert run.returncode == 0, f"{run.stdout[-6000:]}\n{run.stderr[-2000:]}"
