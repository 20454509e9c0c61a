"""Runs vLLM's own Gemma 4 tests with our parser in place of vLLM's, and writes docs/differences.md.

    .venv/bin/python tests/parser/upstream/run.py

The tests come from vLLM's source distribution, which is fetched into the cache and never committed. A failure that
`differences.toml` does not explain makes the run fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import vllm_env  # noqa: E402

VERSION = "0.33.0"
DOCUMENT = vllm_env.ROOT / "docs" / "differences.md"
TESTS = (
    "tests/tool_parsers/test_gemma4_tool_parser.py",
    "tests/parser/engine/test_gemma4_streaming_reasoning.py",
    "tests/tool_use/test_gemma4_responses_adjust_request.py",
    "tests/parser/engine/test_token_id_scanner.py",
    "tests/parser/engine/test_replay.py",
)
#: Of tests for every model's parser, ours are those with Gemma 4's name.
OF_ALL_MODELS = {"test_replay.py": "gemma4"}
#: They set up what vLLM's whole suite needs, and import what is not installed here.
LEFT_OUT = ("tests/conftest.py", "tests/tool_use/conftest.py")


def sources(environment: vllm_env.VllmEnvironment) -> Path:
    """The unpacked source distribution's folder, fetched if it is not there yet."""
    target = vllm_env.cache() / f"sources-{VERSION}"
    tree = target / f"vllm-{VERSION}"
    if (target / ".done").exists():
        return tree
    say(f"fetching vLLM {VERSION}'s source distribution (47 MB)")
    with tempfile.TemporaryDirectory() as scratch:
        vllm_env.install(Path(scratch) / "tools", vllm_env.REQUIREMENTS / "vllm-sources.txt")
        download = ["pip", "--python", str(environment.python), "download", "--quiet", "--no-deps"]
        download += ["--no-binary", ":all:", "--no-build-isolation", "--dest", scratch, f"vllm=={VERSION}"]
        # pip keeps a source distribution only after asking for its metadata, for which vLLM's setup.py has to run.
        settings = {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": VERSION}
        tools = {**os.environ, **settings, "PYTHONPATH": f"{scratch}/tools"}
        subprocess.run([sys.executable, "-m", *download], check=True, env=tools)
        with tarfile.open(next(Path(scratch).glob("vllm-*.tar.gz"))) as archive:
            wanted = [member for member in archive if "/tests/" in member.name]
            archive.extractall(target, wanted, filter="data")
    (target / ".done").touch()
    return tree


def run(environment: vllm_env.VllmEnvironment, tree: Path) -> Counter[str]:
    """Run them; the failed tests by name, and the number of passed ones under the empty name."""
    for name in LEFT_OUT:
        (tree / name).unlink(missing_ok=True)
    outcome: Counter[str] = Counter()
    path = os.pathsep.join(map(str, (*environment.path, HERE, tree)))
    for test in TESTS:
        selection = ["-k", OF_ALL_MODELS[Path(test).name]] if Path(test).name in OF_ALL_MODELS else []
        say(f"{test} {' '.join(selection)}")
        with tempfile.NamedTemporaryFile(suffix=".xml") as report:
            command = [str(environment.python), "-m", "pytest", "-q", "-p", "replace_parsers", "-p", "no:cacheprovider"]
            command += ["--import-mode=importlib", "-W", "ignore", "--tb=no", "--junitxml", report.name, test]
            done = subprocess.run(
                [*command, *selection],
                cwd=tree,
                env={**environment.variables(), "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode not in (0, 1):
                raise RuntimeError(f"vLLM's tests did not run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
            for case in ET.parse(report.name).getroot().iter("testcase"):
                failed = case.find("failure") is not None or case.find("error") is not None
                outcome[_name(test, case) if failed else ""] += 1
    return outcome


def _name(test: str, case: ET.Element) -> str:
    group = case.get("classname", "").rpartition(".")[2]
    return f"{Path(test).name}::{group}::{case.get('name')}"


def explain(outcome: Counter[str]) -> tuple[list[tuple[dict[str, object], int]], list[str]]:
    """How many failures each difference explains, and those that none does."""
    differences = tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))["difference"]
    counts: Counter[str] = Counter()
    unexplained = []
    for name in (name for name in outcome if name):
        difference = next((each for each in differences if any(fnmatchcase(name, one) for one in each["tests"])), None)
        if difference is None:
            unexplained.append(name)
        else:
            counts[difference["title"]] += 1
    return [(each, counts[each["title"]]) for each in differences], unexplained


def write(explained: list[tuple[dict[str, object], int]], outcome: Counter[str]) -> None:
    total, passed = sum(outcome.values()), outcome[""]
    parts = [
        "# Where we differ from vLLM\n",
        f"vLLM {VERSION}'s own tests for Gemma 4, with our parser in place of vLLM's: {passed} of {total} pass."
        " The others want something else than the contract, for these reasons; no failure is without one."
        " `make upstream-tests` runs them and writes this page.\n",
    ]
    for difference, count in explained:
        parts.append(
            f"## {difference['title']}\n\nRule: {difference['rule']}. Tests: {count}.\n\n{difference['why']}\n"
        )
    DOCUMENT.write_text("\n".join(parts), encoding="utf-8")


def say(message: str) -> None:
    sys.stderr.write(f"==> {message}\n")


def main() -> int:
    environment = vllm_env.environment(VERSION)
    outcome = run(environment, sources(environment))
    explained, unexplained = explain(outcome)
    say(f"{outcome['']} of {sum(outcome.values())} pass")
    for difference, count in explained:
        say(f"{count:4} differ: {difference['title']}" + ("" if count else " (no longer: take it out)"))
    for name in unexplained:
        say(f"UNEXPLAINED {name}")
    if unexplained:
        return 1
    write(explained, outcome)
    return 0


if __name__ == "__main__":
    sys.exit(main())
