import subprocess
import sys

import pytest

from gemmaserve_operator.runtime.main import main


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["plan", "--help"]])
def test_help_shows_examples(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "gemmaserve-operator plan -f gemmaserve.yaml" in capsys.readouterr().out


def test_run_is_the_default(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--workers=0"])
    assert caught.value.code == 2
    assert "usage: gemmaserve-operator run" in capsys.readouterr().err


def test_without_a_cluster_it_ends_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    command = [sys.executable, "-m", "gemmaserve_operator", "run", "--metrics-port=0", "--log-format=text"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "set KUBECONFIG, or run inside a cluster" in done.stderr
    assert "Traceback" not in done.stderr


def test_plan_needs_neither_kopf_nor_the_api_client():
    code = (
        "import sys; import gemmaserve_operator.runtime.main; "
        "sys.exit(any(name in sys.modules for name in ('kopf', 'kubernetes')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
