"""The command line: options, progress, files, exit codes."""

from __future__ import annotations

from toolstream.cli import check, load, record, selftest
from toolstream.cli.app import app

app.command()(check.check)
app.command()(load.load)
app.command("proxy-record")(record.proxy_record)
app.command()(selftest.selftest)

__all__ = ["app"]
