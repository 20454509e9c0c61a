"""A check's results for machines: JSON and JUnit XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from toolstream.core.rules import MUST
from toolstream.core.verdicts import FAILED, INCONCLUSIVE, fails, tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolstream.core.verdicts import Breach, Judged, RuleTally

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_json(judged: Sequence[Judged], *, url: str, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The whole result: rules with their breaches, and questions.

    Args:
        judged: What was asked, with the verdicts.
        url: The server's.
        model: What was asked for.
        extra: Fields that every request carried beside what is built in.
    """
    return {
        "url": url,
        "model": model,
        "extraBody": dict(extra),
        "failed": fails(judged),
        "rules": [_rule_json(row) for row in tally(judged)],
        "questions": [
            {
                "name": each.question.name,
                "outcome": each.outcome,
                "note": each.note,
                "seconds": round(each.seconds, 3),
                "failed": [verdict.rule.name for verdict in each.verdicts if verdict.outcome == FAILED],
            }
            for each in judged
        ],
    }


def junit_xml(judged: Sequence[Judged], *, seconds: float) -> str:
    """JUnit XML: one suite an endpoint's question, one case a rule.

    A `should` that fails is no failure here, as it does not fail the check; it stands in the case's output.
    """
    suites = ET.Element("testsuites", name="toolstream check", time=f"{seconds:.3f}")
    for each in judged:
        suite = ET.SubElement(suites, "testsuite", name=each.question.name, time=f"{each.seconds:.3f}")
        suite.set("tests", str(len(each.verdicts)))
        for verdict in each.verdicts:
            case = ET.SubElement(
                suite, "testcase", classname=f"toolstream.{each.question.name}", name=verdict.rule.name
            )
            words = _NOT_XML.sub("\ufffd", "\n".join(_words(breach) for breach in verdict.breaches))
            if verdict.outcome == INCONCLUSIVE:
                ET.SubElement(case, "skipped", message=each.note or "no call to judge")
            elif verdict.outcome == FAILED and verdict.rule.severity == MUST:
                failure = ET.SubElement(case, "failure", message=_NOT_XML.sub("\ufffd", verdict.breaches[0].detail))
                failure.text = words
            elif verdict.outcome == FAILED:
                ET.SubElement(case, "system-out").text = words
        for count, tag in (("failures", "failure"), ("skipped", "skipped")):
            suite.set(count, str(len(suite.findall(f"testcase/{tag}"))))
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def _words(breach: Breach) -> str:
    where = "end of the stream" if breach.chunk is None else f"chunk {breach.chunk}"
    return f"{breach.detail}; {where}: {breach.quote}"


def _rule_json(row: RuleTally) -> dict[str, Any]:
    return {
        "name": row.rule.name,
        "severity": row.severity,
        "outcome": row.outcome,
        "passed": row.passed,
        "failed": row.failed,
        "inconclusive": row.inconclusive,
        "breaks": dict(row.rule.breaks),
        "source": row.rule.source,
        "breaches": [breach._asdict() for breach in row.breaches[:10]],
    }
