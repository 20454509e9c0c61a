"""Settings of the running operator: flags first, then environment variables, then defaults."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ENV_PREFIX: Final = "GEMMASERVE_"
_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_BOOLEANS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class Settings:
    """How the operator runs."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to look after; none means all."""
    max_concurrent_gates: int = 10
    """Gate Jobs that may run at once, over all namespaces."""
    workers: int = 8
    """Reconciles at once."""
    resync_seconds: float = 300.0
    """Seconds between two lists of each kind."""
    leader_elect: bool = False
    lease_namespace: str = "default"
    lease_name: str = "gemmaserve-operator"
    bind_address: str = "0.0.0.0"  # noqa: S104 - probes and metrics are read from outside the pod
    metrics_port: int = 8080
    """Port of /metrics; 0 turns it off."""
    probe_port: int = 8081
    """Port of /healthz; 0 turns it off."""
    log_level: str = "info"
    log_format: Literal["json", "text"] = "json"


def add_settings(parser: argparse.ArgumentParser, environ: Mapping[str, str] | None = None) -> None:
    """Add a flag for each setting, with the environment's value as its default."""
    defaults = Settings()
    flags = _Flags(parser, os.environ if environ is None else environ)
    flags.add("namespaces", _names, "comma-separated namespaces to look after; all of them if not given", ())
    flags.add("max-concurrent-gates", _positive, "gate Jobs that may run at once", defaults.max_concurrent_gates)
    flags.add("workers", _positive, "reconciles at once", defaults.workers)
    flags.add("resync-seconds", _seconds, "seconds between two lists of each kind", defaults.resync_seconds)
    flags.add_switch("leader-elect", "hold a Lease before doing anything", default=defaults.leader_elect)
    flags.add("lease-namespace", str, "namespace of the Lease; the pod's own if not given", _own_namespace())
    flags.add("lease-name", str, "name of the Lease", defaults.lease_name)
    flags.add("bind-address", str, "address for metrics and probes", defaults.bind_address)
    flags.add("metrics-port", _port, "port of /metrics; 0 turns it off", defaults.metrics_port)
    flags.add("probe-port", _port, "port of /healthz; 0 turns it off", defaults.probe_port)
    flags.add("log-level", str.lower, "level", defaults.log_level, choices=("debug", "info", "warning", "error"))
    flags.add("log-format", str.lower, "format", defaults.log_format, choices=("json", "text"))


def read_settings(arguments: argparse.Namespace) -> Settings:
    """The settings that parsed flags say."""
    return Settings(**{field: getattr(arguments, field) for field in Settings.__dataclass_fields__})


class _Flags:
    def __init__(self, parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
        self._parser = parser
        self._environ = environ

    def add(
        self,
        name: str,
        read: Callable[[str], object],
        text: str,
        default: object,
        *,
        choices: tuple[str, ...] | None = None,
    ) -> None:
        # argparse reads a default that is a string as it reads a flag, so that a wrong variable is named as wrong.
        variable = _variable(name)
        self._parser.add_argument(
            f"--{name}",
            type=read,
            choices=choices,
            default=self._environ.get(variable, default),
            metavar=None if choices else "VALUE",
            help=f"{text} (default: {_show(default)}; env {variable})",
        )

    def add_switch(self, name: str, text: str, *, default: bool) -> None:
        variable = _variable(name)
        value = self._environ.get(variable)
        if value is not None:
            default = _boolean(self._parser, variable, value)
        self._parser.add_argument(
            f"--{name}", action=argparse.BooleanOptionalAction, default=default, help=f"{text} (env {variable})"
        )


def _variable(flag: str) -> str:
    return ENV_PREFIX + flag.replace("-", "_").upper()


def _show(default: object) -> object:
    return default if default != () else "all"


def _boolean(parser: argparse.ArgumentParser, variable: str, value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        parser.error(f"{variable} must be true or false, not {value!r}")
    return _BOOLEANS[value.lower()]


def _names(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in value.split(",") if (name := part.strip())))


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _seconds(value: str) -> float:
    seconds = float(value)
    if not 10 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"must be from 10 to 86400 seconds, not {value}")
    return seconds


def _port(value: str) -> int:
    port = int(value)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"must be from 0 to 65535, not {port}")
    return port


def _own_namespace() -> str:
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return Settings().lease_namespace
