"""docs/metrics.md, made from the definitions: `python -m gemmaserve_operator.runtime.metrics_reference > FILE`."""

import sys
from typing import Final

from gemmaserve_operator.runtime.metrics import (
    DEFINITIONS,
    GATE_RESULTS,
    GEMMASERVES,
    LEADER,
    QUEUE_AGE,
    RECONCILES,
    REQUESTS,
    STALENESS,
    Definition,
)

_HEAD: Final = """\
<!-- Generated from operator/src/gemmaserve_operator/runtime/metrics.py by `make generate`; do not edit. -->
# Metrics of the operator

```
kubectl -n gemmaserve-system port-forward deployment/gemmaserve-gemmaserve-operator 8080 &
curl -s localhost:8080/metrics
```

The chart makes a Service for them, and a ServiceMonitor or a PodMonitor when asked to
(`metrics.serviceMonitor.enabled`, `metrics.podMonitor.enabled`). A replica that stands by has them too, and counts next
to nothing.

| metric | type | labels | meaning |
|---|---|---|---|
"""
_ALERTS: Final = f"""
## What to watch for

| when | is true | what it means |
|---|---|---|
| nobody leads | `sum({LEADER.exported}) < 1` | No operator works; what serves goes on serving |
| a watch is dead | `max({STALENESS.exported}) > 600` | The operator does not see the cluster; its probe fails and it \
is started anew after 810 s (two and a half periods of lists, and a minute) |
| the queue stands still | `max({QUEUE_AGE.exported}) > 60` | Reconciles hang, or the API server is slow |
| reconciles fail | `sum(rate({RECONCILES.exported}_count{{outcome="error"}}[10m])) > 0.1` | Look at the \
operator's log |
| writes are refused | `sum(rate({RECONCILES.exported}_count{{outcome="refused"}}[30m])) > 0` | A quota, a webhook or \
a name that is taken: `kubectl get gs -A`, then the condition Degraded |
| the API server is in trouble | `sum(rate({REQUESTS.exported}{{code=~"0\\|5..\\|429"}}[10m])) > 0.1` | Requests fail \
and are repeated |
| gates fail | `increase({GATE_RESULTS.exported}{{result="failed"}}[1h]) > 0` | A revision was kept from traffic |
| something does not serve as asked | `sum({GEMMASERVES.exported}{{phase=~"Degraded\\|Failed"}}) > 0` | \
`kubectl get gs -A` tells which |
"""


def render_reference() -> str:
    """The whole page."""
    return _HEAD + "".join(map(_row, DEFINITIONS)) + _ALERTS


def _row(metric: Definition) -> str:
    labels = ", ".join(f"`{name}`" for name in metric.labels)
    return f"| `{metric.exported}` | {metric.kind} | {labels} | {metric.text} |\n"


if __name__ == "__main__":
    sys.stdout.write(render_reference())
