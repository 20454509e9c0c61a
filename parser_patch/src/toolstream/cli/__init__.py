"""The command line: options, progress, files, exit codes."""

from __future__ import annotations

from toolstream.cli import check, load, record, selftest
from toolstream.cli.app import app


def _examples(*lines: str) -> str:
    r"""An epilog that is shown line by line (`\b` is click's mark for that)."""
    return "\n".join(["\b", "Examples:", *(f"  toolstream {line}" for line in lines)])


app.command(
    epilog=_examples(
        "check http://localhost:8000",
        "check http://localhost:8000 --profile opencode --junit check.xml",
        "check http://gemma4 --gate --requests 16 -c 8 --report /dev/termination-log",
    )
)(check.check)
app.command(
    epilog=_examples(
        "load http://localhost:8000 -c 10,100,500,1000 -n 1000 --html load.html",
        "load http://localhost:8000 -c 100 -n 500 --mode both --keep failures",
    )
)(load.load)
app.command(
    "proxy-record",
    epilog=_examples("proxy-record http://localhost:8000 --listen 127.0.0.1:8081 --out fault.jsonl"),
)(record.proxy_record)
app.command(epilog=_examples("selftest", "selftest --streams 2000 --json"))(selftest.selftest)

__all__ = ["app"]
