"""The parser gate's verdict: read from its pod's last words, kept as a record, judged in one place."""

import json
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.base import ApiModel
from gemmaserve_operator.api.status import ParserRecord
from gemmaserve_operator.desired.gate_job import VERDICT_EXIT_CODES
from gemmaserve_operator.planning.gate_pods import Ending, find_ending
from gemmaserve_operator.planning.objects import annotation, container_status, name_of
from gemmaserve_operator.planning.types import Json

_DIGEST_MARK: Final = "@sha256:"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate found in an image. Only `passed` opens the way to traffic."""

    record: ParserRecord
    digest: str | None
    """`sha256:...` of the image; None when the node could not say which image it ran."""

    @property
    def passed(self) -> bool:
        """Every test ran and passed, and it is known in which image."""
        record = self.record
        return (
            record.error is None
            and record.failed == 0
            and record.total > 0
            and record.passed == record.total
            and self.digest is not None
        )

    @property
    def reason(self) -> str:
        """The reason that conditions give."""
        if self.passed:
            return reasons.PARSER_REGRESSIONS_PASSED
        if self.digest is None and self.record.error is None and self.record.failed == 0:
            return reasons.IMAGE_DIGEST_UNKNOWN
        return reasons.PARSER_REGRESSIONS_FAILED

    @property
    def message(self) -> str:
        """A sentence for conditions, with the failing tests by name."""
        record = self.record
        if record.error is not None:
            return f"The parser gate gave no report: {record.error}"
        if self.reason == reasons.IMAGE_DIGEST_UNKNOWN:
            return (
                "The node that ran the gate knows no registry digest of the image: push the image to a registry "
                "that the nodes pull from, or set spec.image.digest"
            )
        if self.passed:
            return (
                f"{record.passed}/{record.total} parser regressions passed in {self.digest} "
                f"(vLLM {record.vllm_version}, gemmaserve-parser {record.parser_version})"
            )
        failing = "; ".join(f"{failure.name}: {failure.message}" for failure in record.failures)
        return (
            f"{record.failed} of {record.total} parser regressions failed with vLLM {record.vllm_version}: {failing}. "
            "Build the image with the GemmaServe parser, then change spec.image or set the annotation "
            f"{names.ANNOTATION_RETRY}"
        )

    def to_annotations(self) -> dict[str, str]:
        """The durable form, for the Job and for serving children."""
        annotations = {names.ANNOTATION_VERIFICATION: record_json(self.record)}
        if self.digest:
            annotations[names.ANNOTATION_IMAGE_DIGEST] = self.digest
        return annotations

    @classmethod
    def from_annotations(cls, obj: Json | None) -> "Verdict | None":
        """The verdict recorded on an object; None when there is none that can be read."""
        text = annotation(obj, names.ANNOTATION_VERIFICATION)
        if text is None:
            return None
        try:
            return cls(ParserRecord.model_validate_json(text), annotation(obj, names.ANNOTATION_IMAGE_DIGEST))
        except ValidationError:
            return None


def record_json(record: ApiModel) -> str:
    """A record as compact JSON, the same for the same record."""
    return json.dumps(
        record.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True, separators=(",", ":")
    )


def read_verdict(job: Json, pods: tuple[Json, ...], *, parser: str, written_digest: str | None) -> Verdict | None:
    """The verdict that a gate's pods give; None while there is none."""
    limit = "spec.verification.parser.timeoutSeconds"
    end = find_ending(job, pods, container=names.CONTAINER_GATE, verdicts=(0, *VERDICT_EXIT_CODES), limit=limit)
    if end is None:
        return None
    return Verdict(_read_report(job, end, parser), written_digest or _pulled_digest(end.pod))


def _pulled_digest(pod: Json) -> str | None:
    """The digest under which a registry has the image; an image that was only loaded into a node has none."""
    image_id = str(container_status(pod, names.CONTAINER_GATE).get("imageID") or "")
    return f"sha256:{image_id.split(_DIGEST_MARK)[1]}" if _DIGEST_MARK in image_id else None


def _read_report(job: Json, end: Ending, parser: str) -> ParserRecord:
    if end.last_try:
        return _failed_record(job, end.trouble)
    try:
        report = ParserRecord.model_validate_json(end.message)
    except ValidationError:
        return _failed_record(job, end.trouble)
    if report.parser != parser:
        return _failed_record(job, f"the report is about the parser {report.parser}, not {parser}")
    code = end.exit_code
    if code not in (0, 1) or (code == 0) != (report.failed == 0 and report.passed == report.total):
        return _failed_record(job, f"exit code {code} does not go with {report.passed}/{report.total} passed")
    return report.model_copy(update={"job": name_of(job), "error": None})


def _failed_record(job: Json, error: str) -> ParserRecord:
    return ParserRecord(job=name_of(job), passed=0, failed=0, total=0, error=error)
