import json
import logging

import pytest

from gemmaserve_operator.runtime.logs import set_up_logging


@pytest.fixture(autouse=True)
def _as_it_was():
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], level = before
    root.setLevel(level)
    for name in ("kopf", "asyncio", "aiohttp", "kubernetes"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_json_is_one_object_a_line(capsys):
    set_up_logging("info", "json")
    log = logging.getLogger("gemmaserve_operator.test")
    log.info("two\nlines of %s", "ü", extra={"gemmaserves": 3})
    try:
        int("planned")
    except ValueError:
        log.exception("it failed")
    log.debug("not shown")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["message"] == "two\nlines of ü"
    assert (first["level"], first["logger"], first["gemmaserves"]) == ("info", "gemmaserve_operator.test", 3)
    assert first["time"].endswith("+00:00")
    assert "ValueError: invalid literal" in second["exception"]


def test_libraries_are_quieter_unless_asked(capsys):
    set_up_logging("info", "text")
    logging.getLogger("kopf.objects").info("chatter")
    logging.getLogger("kopf.objects").warning("trouble")
    text = capsys.readouterr().err
    assert "trouble" in text
    assert "chatter" not in text
