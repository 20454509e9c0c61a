"""The live gate's verdict: read from its pod's last words, kept as a record, judged in one place."""

from dataclasses import dataclass

from pydantic import ValidationError

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.conditions import shorten
from gemmaserve_operator.api.status import LiveRecord
from gemmaserve_operator.desired.live_job import VERDICT_EXIT_CODES
from gemmaserve_operator.planning.gate_pods import Ending, find_ending
from gemmaserve_operator.planning.objects import annotation, name_of
from gemmaserve_operator.planning.types import Json
from gemmaserve_operator.planning.verdict import record_json

_MAX_QUOTE = 400


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """What requests to a revision's pods found. Only `passed` opens the way to traffic."""

    record: LiveRecord

    @property
    def passed(self) -> bool:
        """Every request was answered, no rule was broken, and there was something to judge."""
        record = self.record
        return record.error is None and not record.failures and record.failed == 0 and record.passed > 0

    @property
    def reason(self) -> str:
        """The reason that conditions give."""
        return reasons.LIVE_CHECK_PASSED if self.passed else reasons.LIVE_CHECK_FAILED

    @property
    def message(self) -> str:
        """A sentence for conditions, with the broken rules by name."""
        record = self.record
        if self.passed:
            return f"{record.passed} of {record.total} answers judged, streamed tool calls were whole and strict in all"
        retry = f"Mend it, then change the spec or set the annotation {names.ANNOTATION_RETRY}"
        if record.error is not None:
            return f"The live check gave no report: {record.error}. {retry}"
        rules = ", ".join(failure.name for failure in record.failures) or "no rule named"
        quote = shorten(record.failures[0].message, _MAX_QUOTE) if record.failures else ""
        return (
            f"The pods failed the live check in {record.failed} of {record.total} requests: {rules}. {quote}. {retry}"
        )

    def to_annotations(self) -> dict[str, str]:
        """The durable form, for the Job and for serving children."""
        return {names.ANNOTATION_LIVE_VERIFICATION: record_json(self.record)}

    @classmethod
    def from_annotations(cls, obj: Json | None) -> "LiveVerdict | None":
        """The verdict recorded on an object; None when there is none that can be read."""
        text = annotation(obj, names.ANNOTATION_LIVE_VERIFICATION)
        if text is None:
            return None
        try:
            return cls(LiveRecord.model_validate_json(text))
        except ValidationError:
            return None


def read_live_verdict(job: Json, pods: tuple[Json, ...], *, parser: str) -> LiveVerdict | None:
    """The verdict that the live gate's pods give; None while there is none."""
    limit = "spec.verification.live.timeoutSeconds"
    end = find_ending(job, pods, container=names.CONTAINER_LIVE, verdicts=(0, *VERDICT_EXIT_CODES), limit=limit)
    return LiveVerdict(_read_report(job, end, parser)) if end is not None else None


def _read_report(job: Json, end: Ending, parser: str) -> LiveRecord:
    try:
        report = LiveRecord.model_validate_json(end.message)
    except ValidationError:
        return _failed_record(job, end.trouble)
    if report.parser != parser:
        return _failed_record(job, f"the report is about the parser {report.parser}, not {parser}")
    report = report.model_copy(update={"job": name_of(job), "error": None})
    if (end.exit_code == 0) != LiveVerdict(report).passed:
        return _failed_record(job, f"exit code {end.exit_code} does not go with {report.passed}/{report.total} passed")
    return report


def _failed_record(job: Json, error: str) -> LiveRecord:
    return LiveRecord(job=name_of(job), passed=0, failed=0, total=0, error=error)
