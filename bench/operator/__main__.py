"""What many GemmaServes cost the operator, beside as many bare objects on the same cluster in the same run.

    .venv/bin/python bench/operator                          # 200 resources
    .venv/bin/python bench/operator --resources 1000 --json results.json
    .venv/bin/python bench/operator --gates 200              # all gates at once
    .venv/bin/python bench/operator --page results.json      # into docs/performance.md

A real API server with real controllers; nodes and pods are kwok's (tests/scale/kwok-stages.yaml): a gate passes as
soon as its pod is scheduled, a serving pod is ready at once. Each GemmaServe has an image digest of its own and so a
gate of its own; the live gate is off unless asked for. The floor is as many Deployments, Jobs and twice as many
Services, exactly as the operator builds them, created without it. Controller manager and scheduler may make 500
requests a second instead of 20.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from kubernetes_api import CHILDREN, QUIET_SECONDS, Api, Counter, bare_objects, gemmaserve, nodes
from report import as_text, write_page

from localcluster import Cluster, program

ROOT = Path(__file__).resolve().parents[2]
STAGES = ROOT / "tests" / "scale" / "kwok-stages.yaml"
QPS = 500
REST_SECONDS = 30
DELETIONS = 100
BETWEEN_DELETIONS = 0.5
"""Seconds, in which what a deletion sets off (pods that go and come, endpoints) is over."""
LIMIT = 900.0
"""No wait is longer than this many seconds."""
METRICS_PORT = 18080


def say(text):
    print(text, file=sys.stderr, flush=True)


@contextmanager
def running(command, log, **environment):
    """A process for as long as the body runs."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def operator(kubeconfig, log, gates):
    command = [sys.executable, "-m", "gemmaserve_operator", "run", "--log-format=text", "--probe-port=0"]
    command += ["--bind-address=127.0.0.1", f"--metrics-port={METRICS_PORT}", f"--max-concurrent-gates={gates}"]
    return running(command, log, KUBECONFIG=str(kubeconfig))


def peak_mib(process):
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) / 1024


def cpu_seconds(process):
    """User and system time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds():
    """What all processors together have worked since the machine started."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


async def until(check, what, since=None):
    """Seconds from `since` until the check holds."""
    start = time.monotonic() if since is None else since
    shown = time.monotonic()
    while not check():
        if time.monotonic() - start > LIMIT:
            raise SystemExit(f"not within {LIMIT:.0f} s: {what}")
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            say(f"  {shown - start:.0f} s: waiting until {what}")
        await asyncio.sleep(0.02)
    return time.monotonic() - start


@asynccontextmanager
async def counting(api, namespace):
    """Counters of everything in a namespace, fed by watches."""
    counter = Counter(namespace)
    tasks = [asyncio.create_task(counter.follow(api, kind)) for kind in Counter.KINDS]
    try:
        await asyncio.gather(*(counter.begun[kind].wait() for kind in Counter.KINDS))
        yield counter
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure_floor(api, number):
    await api.create_namespace("floor")
    objects = list(bare_objects("floor", number))
    async with counting(api, "floor") as seen:
        start, worked = time.monotonic(), machine_cpu_seconds()
        creating = asyncio.create_task(api.create_all(objects))
        children = await until(lambda: seen.children_of_all(number), "all bare objects are there", start)
        ready = await until(lambda: seen.all_run(number), "all bare pods are ready and all Jobs complete", start)
        await creating
        worked = machine_cpu_seconds() - worked
    return {"children_s": children, "ready_s": ready, "machine_cpu_s": worked}


async def measure_rollout(api, process, number, *, live):
    await api.create_namespace("scale")
    async with counting(api, "scale") as seen:
        start, worked, before = time.monotonic(), machine_cpu_seconds(), cpu_seconds(process)
        creating = asyncio.create_task(api.create_all(gemmaserve("scale", index, live) for index in range(number)))
        children = await until(lambda: seen.children_of_all(number), "all children are there", start)
        ready = await until(lambda: seen.all_ready(number), "all GemmaServes are Ready", start)
        await creating
        worked, cpu = machine_cpu_seconds() - worked, cpu_seconds(process) - before
        to_ready = await api.operator_writes(METRICS_PORT)
        say(f"  children {children:.1f} s, Ready {ready:.1f} s; at rest for {REST_SECONDS} s")
        await until(seen.is_quiet, "nothing changes any more")
        await events_sent(api)
        changes, before = seen.changes, await api.operator_writes(METRICS_PORT)
        await asyncio.sleep(REST_SECONDS)
        writes = await api.operator_writes(METRICS_PORT) - before
        say(f"  {writes} writes and {seen.changes - changes} changes at rest; {DELETIONS} deletions")
        back = await measure_deletions(api, seen, number)
    return {
        "children_s": children,
        "ready_s": ready,
        "machine_cpu_s": worked,
        "cpu_s": cpu,
        "writes_to_ready": to_ready,
        "writes_at_rest": writes,
        "back_p50_ms": statistics.median(back) * 1e3,
        "back_p99_ms": statistics.quantiles(back, n=100)[98] * 1e3,
    }


async def events_sent(api):
    """Wait until the operator writes nothing for a while: events come behind everything else."""
    before = -1
    while (writes := await api.operator_writes(METRICS_PORT)) != before:
        before = writes
        await asyncio.sleep(QUIET_SECONDS)


async def measure_deletions(api, seen, number):
    """Seconds from the answer to a deletion until a watch tells of the new object, for Services and Deployments."""
    names = sorted(name for kind in CHILDREN[1:] for name in seen.names(kind))
    step = max(1, len(names) // DELETIONS)
    times = []
    for kind, name in [(kind, name) for name in names[::step] for kind in CHILDREN[1:] if name in seen.names(kind)]:
        if len(times) == DELETIONS:
            break
        back = seen.next_added(kind, name)
        await api.delete(kind, "scale", name)
        start = time.monotonic()
        times.append(max(0.0, await asyncio.wait_for(back, 30) - start))
        await asyncio.sleep(BETWEEN_DELETIONS)
    await until(lambda: seen.all_ready(number), "all is well again")
    return times


async def measure_cold_start(api, kubeconfig, log, gates, number):
    """Seconds from the start of the process until each resource was looked at and none waits."""
    start = time.monotonic()
    with operator(kubeconfig, log, gates) as process:

        async def converged():
            metrics = await api.operator_metrics(METRICS_PORT)
            return metrics and metrics["reconciles"] >= number and metrics["depth"] == 0

        while not await converged():
            if time.monotonic() - start > LIMIT:
                raise SystemExit("the operator does not converge")
            await asyncio.sleep(0.05)
        seconds = time.monotonic() - start
        await asyncio.sleep(5)
        return {
            "cold_start_s": seconds,
            "cold_start_writes": await api.operator_writes(METRICS_PORT),
            "cold_start_peak_mib": peak_mib(process),
        }


async def run(arguments, cluster, folder):
    async with Api(cluster.kubeconfig) as api:
        await api.create_all(nodes())
        cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "charts/gemmaserve-operator/files/gemmaserves.yaml"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/gemmaserves.gemmaserve.dev", "--timeout=30s")
        number, log = arguments.resources, folder / "operator.log"
        say(f"the floor: {number} Deployments and Jobs, {2 * number} Services")
        floor = await measure_floor(api, number)
        say(f"  there {floor['children_s']:.1f} s, ready {floor['ready_s']:.1f} s; removing them")
        await api.remove_namespace("floor")
        say(f"{number} GemmaServes, {arguments.gates} gates at once")
        with operator(cluster.kubeconfig, log, arguments.gates) as process:
            await until(lambda: "working" in log.read_text(), "the operator works")
            ours = await measure_rollout(api, process, number, live=arguments.live)
            ours["peak_mib"] = peak_mib(process)
        say("cold start")
        ours |= await measure_cold_start(api, cluster.kubeconfig, log, arguments.gates, number)
    return {"resources": number, "gates": arguments.gates, "live": arguments.live, "floor": floor, "operator": ours}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resources", type=int, default=200, help="how many GemmaServes (default: 200)")
    parser.add_argument("--gates", type=int, default=10, help="gates at once (default: the operator's own, 10)")
    parser.add_argument("--live", action="store_true", help="with the live gate: a second Job for each GemmaServe")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    parser.add_argument("--page", nargs="+", type=Path, help="measure nothing: these results into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.page:
        write_page([json.loads(file.read_text()) for file in arguments.page])
        return
    # Contexts end their processes also when this one is asked to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with (
        tempfile.TemporaryDirectory(prefix="bench-operator-") as scratch,
        Cluster.start(f"bench-{os.getpid()}", scheduler=True, controllers_qps=QPS, report=say) as cluster,
    ):
        folder = Path(scratch)
        kwok = [program("kwok"), f"--kubeconfig={cluster.kubeconfig}", f"--config={STAGES}", "--manage-all-nodes"]
        with running([*map(str, kwok), "--node-lease-duration-seconds=40"], folder / "kwok.log"):
            results = asyncio.run(run(arguments, cluster, folder))
    print(as_text(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
