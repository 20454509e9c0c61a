import argparse

import pytest

from gemmaserve_operator.runtime.settings import Settings, add_settings, read_settings


@pytest.fixture
def read():
    def parse(*flags, **environ):
        parser = argparse.ArgumentParser(prog="operator")
        add_settings(parser, environ)
        return read_settings(parser.parse_args(flags))

    return parse


def test_defaults(read):
    assert read() == Settings()
    assert (Settings().max_concurrent_gates, Settings().namespaces, Settings().leader_elect) == (10, (), False)


def test_flags_come_before_environment_and_that_before_defaults(read):
    settings = read(
        "--workers=3", GEMMASERVE_WORKERS="5", GEMMASERVE_NAMESPACES="a, b,,a", GEMMASERVE_LEADER_ELECT="true"
    )
    assert (settings.workers, settings.namespaces, settings.leader_elect) == (3, ("a", "b"), True)
    assert read("--no-leader-elect", GEMMASERVE_LEADER_ELECT="true").leader_elect is False


@pytest.mark.parametrize(
    ("flags", "environ", "words"),
    [
        (["--workers=0"], {}, "--workers"),
        (["--workers=many"], {}, "--workers"),
        (["--probe-port=70000"], {}, "--probe-port"),
        (["--resync-seconds=1"], {}, "--resync-seconds"),
        (["--log-format=xml"], {}, "--log-format"),
        (["--nonsense"], {}, "--nonsense"),
        ([], {"GEMMASERVE_WORKERS": "0"}, "--workers"),
        ([], {"GEMMASERVE_LEADER_ELECT": "perhaps"}, "GEMMASERVE_LEADER_ELECT"),
    ],
)
def test_wrong_values_are_named(read, capsys, flags, environ, words):
    with pytest.raises(SystemExit) as caught:
        read(*flags, **environ)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err
