"""Our reading of gpt-oss's real tokens, beside openai-harmony's own parser: `inside/`, in a vLLM environment."""

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1])]
import vllm_env  # noqa: E402
import vocabulary  # noqa: E402

INSIDE = Path(__file__).with_name("inside")
TEN_MINUTES = 600


@pytest.mark.vllm
@pytest.mark.timeout(TEN_MINUTES)
def test_real_tokens(monkeypatch):
    monkeypatch.setitem(os.environ, "TIKTOKEN_ENCODINGS_BASE", str(vocabulary.encodings_base()))
    options = [
        "-q",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "-o",
        "python_files=check_*.py",
        "--rootdir",
        str(INSIDE),
        "--confcutdir",  # the conftest.py above needs what only the development environment has
        str(INSIDE),
    ]
    run = vllm_env.environment(vllm_env.BASE_VERSION).run("-m", "pytest", *options, str(INSIDE), timeout=TEN_MINUTES)
    assert run.returncode == 0, f"{run.stdout[-6000:]}\n{run.stderr[-2000:]}"
