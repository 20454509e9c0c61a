"""`plan(snapshot, now) -> Plan`: gates, rollout, status. No I/O, no clock, no randomness."""
