"""`plan(snapshot, now) -> Plan`: gates, rollout, status. No I/O, no clock, no randomness."""

from gemmaserve_operator.planning.planner import plan
from gemmaserve_operator.planning.types import Apply, Delete, Event, Plan, Refusal, Snapshot, Write

__all__ = ["Apply", "Delete", "Event", "Plan", "Refusal", "Snapshot", "Write", "plan"]
