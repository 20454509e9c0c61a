"""Runs everything that is tested on real vLLM code, on every version, and writes docs/compatibility.md from it.

.venv/bin/python tests/parser/compatibility.py             # all versions (twenty minutes)
.venv/bin/python tests/parser/compatibility.py 0.33.0      # one; the others' lines stay
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import vllm_env

from gemmaserve_parser.adapters.versions import ALLOW_UNTESTED, TESTED, generation

DOCUMENT = vllm_env.ROOT / "docs" / "compatibility.md"
INSIDE = Path(__file__).resolve().parent / "adapters" / "inside"
CASES = Path(__file__).resolve().parent / "cases" / "public.jsonl"
PARSER = "import sys; from gemmaserve_parser.cli import main; sys.exit(main(sys.argv[1:]))"
MODELS = {"Gemma 4": "gemma4_atomic", "gpt-oss": "openai"}

HEAD = f"""# vLLM versions

`gemmaserve-parser` refuses to start with a vLLM outside {TESTED}, with one message that says so; `{ALLOW_UNTESTED}=1`
runs it untested. What ran on which version (`make compatibility` runs it again and writes this page):

| vLLM | adapter | {" | ".join(f"{model} regressions" for model in MODELS)} | public cases | adapter tests |
|---|---|{"---|" * len(MODELS)}---|---|
"""
TAIL = """
The regressions are those of `gemmaserve-parser regressions`: vLLM's own chat, responses and messages servers, with the
parser that they hand out for the name, and a scripted engine. The public cases, made from reports about vLLM,
llama.cpp, ollama, agents and others, are `tests/parser/cases/public.jsonl`, each replayed through the adapter in every
mode. The adapter tests are in `tests/parser/adapters/inside`. Of 0.20.2 and 0.32.0 all of it runs in `make test`. A
version between two tested ones is expected to work as they do.
"""


class Ran(NamedTuple):
    """What came of one version."""

    cells: tuple[str, ...]
    failed: bool


def run(version: str) -> Ran:
    """Run everything on one version."""
    environment = vllm_env.environment(version)
    cells, failed = [f"`{generation(version)}`"], False
    for model, parser in MODELS.items():
        say(f"vLLM {version}: {model} regressions")
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.json"
            done = environment.run("-c", PARSER, "regressions", "--parser", parser, "--report", str(report))
            if not report.exists():
                raise RuntimeError(f"vLLM {version}: no report:\n{done.stdout}\n{done.stderr}")
            fields = json.loads(report.read_text(encoding="utf-8"))
        cells.append(f"{fields['passed']} of {fields['total']}")
        failed |= done.returncode != 0
    say(f"vLLM {version}: public cases")
    done = environment.run("-c", PARSER, "replay", str(CASES), "--json")
    replayed = json.loads(done.stdout)
    if "adapter" not in replayed["through"]:
        raise RuntimeError(f"vLLM {version} was not found by its own Python:\n{done.stderr}")
    cells.append(f"{replayed['right']} of {replayed['total']}")
    failed |= done.returncode != 0
    say(f"vLLM {version}: adapter tests")
    done = environment.run("-m", "pytest", "-c", str(INSIDE / "pytest.ini"), str(INSIDE))
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    cells.append(f"{counts.get('passed', 0)} of {sum(counts.values())}")
    return Ran(tuple(cells), failed or done.returncode != 0)


def lines_of(document: Path) -> dict[str, str]:
    """The lines that are there, by version."""
    text = document.read_text(encoding="utf-8") if document.exists() else ""
    return {match[1]: match[0] for match in re.finditer(r"^\| (\d[\d.]+) \|.*$", text, re.MULTILINE)}


def say(message: str) -> None:
    sys.stderr.write(f"==> {message}\n")


def main(chosen: list[str]) -> int:
    lines = lines_of(DOCUMENT)
    failed = []
    for version in chosen or vllm_env.VERSIONS:
        ran = run(version)
        lines[version] = f"| {version} | {' | '.join(ran.cells)} |"
        failed += [version] if ran.failed else []
    rows = "".join(f"{lines[version]}\n" for version in vllm_env.VERSIONS if version in lines)
    DOCUMENT.write_text(HEAD + rows + TAIL, encoding="utf-8")
    say(f"wrote {DOCUMENT}" + (f"; failures with vLLM {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
