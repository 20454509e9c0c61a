"""kubectl as a process: where it is told to look, and what its failures become."""

import sys

import pytest

from gemmaserve_operator.plugin import __main__ as entry
from gemmaserve_operator.plugin import kubectl as module
from gemmaserve_operator.plugin.kubectl import Kubectl, KubectlError


@pytest.fixture
def program(tmp_path):
    """A kubectl that prints its arguments, or fails with some words."""

    def make(fails_with=None):
        path = tmp_path / "kubectl"
        action = f"sys.exit({fails_with!r})" if fails_with else "print(json.dumps({'items': [], 'argv': sys.argv[1:]}))"
        path.write_text(f"#!{sys.executable}\nimport json, sys\n{action}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_it_is_told_where_to_look(program):
    kubectl = Kubectl("team", ["--context=a"], program())
    argv = kubectl._json("get", "x")["argv"]
    assert argv == ["--context=a", "--namespace=team", "get", "x", "--output=json"]
    assert "--namespace=other" in kubectl.run("get", namespace="other")


def test_names_of_others_are_never_asked_for(program):
    assert Kubectl(program=program()).children("gemma4", "pods") == []


@pytest.mark.parametrize(
    ("words", "next_step"),
    [
        ('error: the server doesn\'t have a resource type "gemmaserves"', "install its chart"),
        ('Error from server (NotFound): gemmaserves.gemmaserve.dev "a" not found', "kubectl get gs --all-namespaces"),
        ('Error from server (Forbidden): User "a" cannot list resource "gemmaserves"', "roles"),
        ("The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?", "--context"),
        ("error: current-context is not set", "kubectl config use-context"),
        ("something else", "something else"),
    ],
)
def test_failures_come_with_the_next_step(program, words, next_step):
    with pytest.raises(KubectlError) as caught:
        Kubectl(program=program(words)).get("a")
    said, *step = str(caught.value).splitlines()
    assert said in words
    assert next_step in "".join(step or [said])


def test_without_kubectl():
    with pytest.raises(KubectlError, match="install kubectl"):
        Kubectl(program="/nowhere/kubectl").get("a")


def test_one_that_does_not_end(tmp_path, monkeypatch):
    path = tmp_path / "kubectl"
    path.write_text("#!/bin/sh\nsleep 30\n")
    path.chmod(0o755)
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.1)
    with pytest.raises(KubectlError, match="did not end"):
        Kubectl(program=str(path)).get("a")


def test_without_its_libraries_it_says_how_to_install_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "gemmaserve_operator.plugin.cli", raising=False)
    with pytest.raises(SystemExit, match=r"gemmaserve-operator\[kubectl\]"):
        entry.main()
