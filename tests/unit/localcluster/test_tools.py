"""Where programs are looked for, and when they are built."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localcluster import gotoolchain, tools
from localcluster.errors import ClusterError

MODULE = "coredns"


def quiet(line: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMMASERVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache"


def fake_go(folder: Path, build: str) -> Path:
    """A `go` that says it is new enough, notes each build in `builds`, and then runs the shell code `build`.

    In `build`, $OUTPUT is the program that is asked for.
    """
    folder.mkdir(exist_ok=True)
    go = folder / "go"
    go.write_text(
        f"""#!/bin/sh
if [ "$1" = version ]; then echo go version go1.26.0 linux/amd64; exit; fi
echo "$PWD" >> {folder}/builds
while [ "$1" != -o ]; do shift; done
OUTPUT=$2
{build}
"""
    )
    go.chmod(0o755)
    return go


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    def put_on_path(build: str) -> Path:
        program = fake_go(tmp_path / "go", build)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return program.parent / "builds"

    return put_on_path


def executable(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)


class TestLookUp:
    def test_kubebuilder_assets_come_first(self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        executable(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
        assert tools.kubernetes_dir(["etcd", "kube-apiserver", "kubectl"], quiet) == tmp_path / "assets"

    def test_assets_that_lack_a_program_are_not_mixed_with_ours(
        self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, go: Callable[[str], Path]
    ) -> None:
        go('touch "$OUTPUT"')
        executable(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
        found = tools.kubernetes_dir(["etcd", "kube-apiserver", "kube-controller-manager"], quiet)
        assert found.is_relative_to(cache / "bin")

    def test_the_cache_comes_before_building(self, cache: Path, go: Callable[[str], Path]) -> None:
        builds = go('touch "$OUTPUT"')
        first = tools.build(MODULE, quiet)
        assert tools.build(MODULE, quiet) == first
        assert len(builds.read_text().splitlines()) == 1

    def test_every_kubernetes_program_is_a_name_of_the_one_binary(self, cache: Path, go: Callable[[str], Path]) -> None:
        go('touch "$OUTPUT"')
        folder = tools.build("kube", quiet)
        for name in ("etcd", "kube-apiserver", "kube-scheduler", "kubelet", "kubectl"):
            assert (folder / name).resolve() == folder / "kube"

    def test_an_unknown_program_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ClusterError, match=r"no module builds 'tiller'.*helm"):
            tools.program("tiller", quiet)

    def test_an_unknown_module_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(ClusterError, match=r"no module 'tiller'.*helm"):
            tools.build("tiller", quiet)


class TestBuild:
    def test_a_failed_build_shows_what_go_said_and_leaves_nothing_to_be_found(
        self, cache: Path, go: Callable[[str], Path]
    ) -> None:
        go('echo "main.go:7: undefined: x" >&2; exit 1')
        with pytest.raises(ClusterError, match=r"(?s)building coredns failed.*undefined: x.*go build"):
            tools.build(MODULE, quiet)
        go('touch "$OUTPUT"')
        assert (tools.build(MODULE, quiet) / MODULE).is_file()

    def test_two_processes_build_once(self, cache: Path, go: Callable[[str], Path]) -> None:
        builds = go('sleep 0.5; touch "$OUTPUT"')
        processes = [multiprocessing.Process(target=tools.build, args=(MODULE, quiet)) for _ in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(30)
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert len(builds.read_text().splitlines()) == 1

    def test_long_builds_report_progress(
        self, cache: Path, go: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tools, "_SECONDS_BETWEEN_LINES", 0.0)
        go('echo net/http >&2; echo main >&2; touch "$OUTPUT"')
        lines: list[str] = []
        tools.build(MODULE, lines.append)
        assert any("2 packages compiled" in line for line in lines)


class TestSourceKey:
    @pytest.fixture
    def sources(self, tmp_path: Path) -> Path:
        (tmp_path / "module" / "pause").mkdir(parents=True)
        (tmp_path / "module" / "go.mod").write_text("module x\n")
        (tmp_path / "module" / "pause" / "main.go").write_text("package main\n")
        return tmp_path / "module"

    @pytest.mark.parametrize("file", ["go.mod", "pause/main.go", "new.go"])
    def test_it_changes_with_every_file(self, sources: Path, file: str) -> None:
        before = tools.source_key(sources)
        (sources / file).write_text("something else\n")
        assert tools.source_key(sources) != before

    def test_it_changes_with_a_files_name(self, sources: Path) -> None:
        before = tools.source_key(sources)
        (sources / "go.mod").rename(sources / "go.mod2")
        assert tools.source_key(sources) != before

    def test_two_clones_share_it(self, sources: Path, tmp_path: Path) -> None:
        clone = tmp_path / "elsewhere"
        (clone / "pause").mkdir(parents=True)
        for name in ("pause/main.go", "go.mod"):
            (clone / name).write_bytes((sources / name).read_bytes())
        assert tools.source_key(clone) == tools.source_key(sources)


class TestGo:
    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("go version go1.26.8 linux/amd64", (1, 26)),
            ("go version go1.27rc1 linux/arm64", (1, 27)),
            ("go version devel +5e0a3f", None),
            ("gccgo (Debian 12.2.0)", None),
        ],
    )
    def test_versions(self, text: str, version: tuple[int, int] | None) -> None:
        assert gotoolchain.parse_version(text) == version

    @pytest.mark.parametrize(("version", "enough"), [("1.25.9", False), ("1.26.0", True), ("2.0", True)])
    def test_new_enough(self, tmp_path: Path, version: str, enough: bool) -> None:
        go = tmp_path / "go"
        go.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
        go.chmod(0o755)
        assert gotoolchain.new_enough(go) is enough

    def test_what_does_not_run_is_not_new_enough(self, tmp_path: Path) -> None:
        assert not gotoolchain.new_enough(tmp_path / "go")
