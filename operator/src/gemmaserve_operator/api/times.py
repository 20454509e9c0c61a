"""Kubernetes times: RFC 3339, UTC, whole seconds."""

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """As the API server writes `metav1.Time`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> datetime | None:
    """The moment of an RFC 3339 text; None for none and for what is no time (others may have written it)."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
