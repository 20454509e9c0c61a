"""The rules, by client profile."""

from __future__ import annotations

from toolstream.core.rules import answers, calls, wire
from toolstream.core.rules.rule import MUST, PROFILES, SHOULD, Finding, Profile, Rule, Severity

RULES: tuple[Rule, ...] = (*wire.RULES, *calls.RULES, *answers.RULES)

__all__ = ["MUST", "PROFILES", "RULES", "SHOULD", "Finding", "Profile", "Rule", "Severity"]
