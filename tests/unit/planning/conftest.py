"""A tiny model of Kubernetes: enough of it to run the planner against, one write or one event at a time."""

import copy
import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Apply, Plan, Snapshot, plan

DIGEST = "sha256:" + "a" * 64
GPU = "nvidia.com/gpu"


def passed_report(**changes):
    report = {
        "parser": "gemma4_atomic",
        "parserVersion": "0.1.0",
        "vllmVersion": "0.32.0",
        "passed": 61,
        "failed": 0,
        "total": 61,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:09Z",
        "failures": [],
    }
    return report | changes


def passed_live_report(**changes):
    report = passed_report(passed=14, total=16)
    return report | {"inconclusive": 2} | changes


def failed_live_report(*rules):
    failures = [{"name": rule, "message": f"chat stream auto one-call: {rule}"} for rule in rules or ("call-has-id",)]
    return passed_live_report(passed=1, failed=13, failures=failures)


def failed_report():
    failure = {"name": "mega_delta_with_all_tools_in_one_chunk", "message": "2 calls instead of 3"}
    return passed_report(passed=60, failed=1, failures=[failure])


class Cluster:
    """One namespace with one GemmaServe; controllers act only in `settle` and in the methods that name an event."""

    def __init__(self, spec=None, *, gpus=8, name="gemma4"):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.gpus = gpus
        self.objects = {}
        self.uids = itertools.count(1)
        self.reports = {}
        self.live_reports = {}
        self.live_passed = set()
        self.registry = {"v1": DIGEST}
        self.pods_ready = True
        self.slices_follow = True
        self.free_gates = 10
        self.log = []
        base = {"model": {"uri": "hf://google/gemma-4"}, "image": {"repository": "r.example/vllm", "digest": DIGEST}}
        self.resource = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": "team", "uid": "owner", "generation": 1, "annotations": {}},
            "spec": base | (spec or {}),
        }

    # What a user does.

    def edit(self, **changes):
        self.resource["spec"] = {**self.resource["spec"], **changes}
        self.resource["metadata"]["generation"] += 1

    def retry(self, value):
        self.resource["metadata"]["annotations"][names.ANNOTATION_RETRY] = value

    def tick(self, seconds):
        self.now += timedelta(seconds=seconds)

    # What the API server does.

    def of(self, kind):
        return [copy.deepcopy(obj) for (k, _), obj in sorted(self.objects.items()) if k == kind]

    def snapshot(self):
        return Snapshot(
            resource=copy.deepcopy(self.resource),
            jobs=tuple(self.of("Job")),
            deployments=tuple(self.of("Deployment")),
            services=tuple(self.of("Service")),
            pods=tuple(self.of("Pod")),
            endpoint_slices=tuple(self.of("EndpointSlice")),
            revision_records=tuple(self.of("ControllerRevision")),
            free_gates=self.free_gates,
        )

    def plan(self) -> Plan:
        return plan(self.snapshot(), self.now)

    def write(self, write):
        self.log.append(write)
        if isinstance(write, Apply):
            self._apply(write)
        else:
            self._delete(write)

    def _apply(self, write):
        key = (write.body["kind"], write.body["metadata"]["name"])
        old = self.objects.get(key)
        assert write.creates == (old is None), f"{write.why}: creates={write.creates}"
        new = copy.deepcopy(write.body)
        if old is None:
            new["metadata"] |= {"uid": f"u{next(self.uids)}", "creationTimestamp": self.stamp(), "generation": 1}
            self.objects[key] = new
            return
        assert write.body["metadata"]["uid"] == old["metadata"]["uid"]
        changed = new.get("spec") != old.get("spec")
        if key[0] == "Deployment":
            # Its generation moves with its annotations, too.
            changed |= not new["metadata"]["annotations"].items() <= old["metadata"]["annotations"].items()
        if key[0] == "Job":
            assert not changed, "a Job's spec cannot change"
        new["metadata"] = {**old["metadata"], **new["metadata"]}
        new["metadata"]["generation"] = old["metadata"]["generation"] + changed
        if key[0] == "ControllerRevision":
            assert new["data"] == old["data"], "a ControllerRevision's data cannot change"
        if "status" in old:
            new["status"] = old["status"]
        self.objects[key] = new

    def _delete(self, write):
        key = (write.kind, write.name)
        assert self.objects[key]["metadata"]["uid"] == write.uid
        self.remove(key)

    def remove(self, key):
        """An object goes, and its pods with it."""
        uid = self.objects.pop(key)["metadata"]["uid"]
        for pod_key, pod in list(self.objects.items()):
            if pod_key[0] == "Pod" and pod["metadata"]["ownerReferences"][0]["uid"] == uid:
                del self.objects[pod_key]

    def stamp(self):
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    # What the controllers, the scheduler and the kubelet do.

    def controllers(self):
        self._jobs()
        self._deployments()
        self._endpoints()

    def _pod(self, name, owner, labels, spec):
        metadata = {
            "name": name,
            "uid": f"u{next(self.uids)}",
            "labels": labels,
            "creationTimestamp": self.stamp(),
            "ownerReferences": [{"uid": owner["metadata"]["uid"], "controller": True}],
        }
        pod = {"kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(spec), "status": {"phase": "Pending"}}
        self.objects["Pod", name] = pod
        return pod

    def _jobs(self):
        for job in [obj for (kind, _), obj in self.objects.items() if kind == "Job"]:
            if job.get("status"):
                continue
            template = job["spec"]["template"]
            container = template["spec"]["containers"][0]
            image, live = container["image"], container["name"] == names.CONTAINER_LIVE
            report = (
                self.live_reports.get(image, passed_live_report()) if live else self.reports.get(image, passed_report())
            )
            if report is None:
                continue
            pod = self._pod(job["metadata"]["name"] + "-x", job, template["metadata"]["labels"], template["spec"])
            code = 1 if report["failures"] else 0
            if live and not code:
                self.live_passed.add(job["metadata"]["labels"][names.LABEL_REVISION])
            digest = image.partition("@")[2] or self.registry[image.rpartition(":")[2]]
            terminated = {"exitCode": code, "message": json.dumps(report)}
            pod["status"] = {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [
                    {
                        "name": container["name"],
                        "imageID": f"r.example/vllm@{digest}",
                        "state": {"terminated": terminated},
                    }
                ],
            }
            kind = "Failed" if code else "Complete"
            job["status"] = {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": self.stamp()}]}

    def _pods_of(self, owner):
        uid = owner["metadata"]["uid"]
        return [
            pod
            for (kind, _), pod in sorted(self.objects.items())
            if kind == "Pod" and pod["metadata"]["ownerReferences"][0]["uid"] == uid
        ]

    def gpus_used(self):
        return sum(
            int(pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get(GPU, 0))
            for (kind, _), pod in self.objects.items()
            if kind == "Pod" and pod["status"].get("phase") == "Running"
        )

    def _deployments(self):
        deployments = [obj for (kind, _), obj in sorted(self.objects.items()) if kind == "Deployment"]
        for deployment in deployments:
            pods = self._pods_of(deployment)
            for pod in pods[deployment["spec"]["replicas"] :]:
                del self.objects["Pod", pod["metadata"]["name"]]
        for deployment in deployments:
            template = deployment["spec"]["template"]
            for _ in range(deployment["spec"]["replicas"] - len(self._pods_of(deployment))):
                name = f"{deployment['metadata']['name']}-{next(self.uids)}"
                self._pod(name, deployment, template["metadata"]["labels"], template["spec"])
            for pod in self._pods_of(deployment):
                self._schedule(pod)
            pods = self._pods_of(deployment)
            deployment["status"] = {
                "observedGeneration": deployment["metadata"]["generation"],
                "replicas": len(pods),
                "updatedReplicas": len(pods),
                "readyReplicas": sum(self.is_ready(pod) for pod in pods),
            }

    def _schedule(self, pod):
        if pod["status"]["phase"] == "Pending":
            need = int(pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get(GPU, 0))
            if self.gpus_used() + need > self.gpus:
                old = pod["status"].get("conditions")
                pod["status"]["conditions"] = old or [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": f"0/1 nodes are available: 1 Insufficient {GPU}.",
                        "lastTransitionTime": self.stamp(),
                    }
                ]
                return
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self.stamp()}
            pod["status"] = {"phase": "Running", "conditions": [scheduled]}
        if pod["status"]["phase"] == "Running" and self.pods_ready and not self.is_ready(pod):
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": self.stamp()}
            pod["status"]["conditions"].append(ready)

    @staticmethod
    def is_ready(pod):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))

    def _endpoints(self):
        """While `slices_follow` is false, those of the main Service stay as they are."""
        stays = None if self.slices_follow else self.resource["metadata"]["name"]
        for key in [key for key in self.objects if key[0] == "EndpointSlice" and key[1] != stays]:
            del self.objects[key]
        for service in self.of("Service"):
            name, selector = service["metadata"]["name"], service["spec"]["selector"]
            if name == stays:
                continue
            pods = [pod for pod in self.of("Pod") if selector.items() <= pod["metadata"]["labels"].items()]
            self.objects["EndpointSlice", name] = {
                "metadata": {
                    "name": name,
                    "labels": service["metadata"]["labels"] | {names.LABEL_SERVICE_NAME: name},
                },
                "endpoints": [
                    {
                        "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"]},
                        "conditions": {"ready": self.is_ready(pod)},
                    }
                    for pod in pods
                ],
            }

    # The operator.

    def reconcile(self, *, writes=None):
        """One pass: the plan's writes (or only the first so many, as when the process dies), then the status."""
        result = self.plan()
        for write in result.writes[:writes]:
            self.write(write)
        if writes is None or writes > len(result.writes):
            self.resource["status"] = result.status
        return result

    def settle(self, *, passes=40):
        """Controllers and operator in turn until neither does anything more without time passing."""
        for _ in range(passes):
            before = copy.deepcopy((self.objects, self.resource))
            self.controllers()
            self.reconcile()
            if (self.objects, self.resource) == before:
                return self
        pytest.fail("the cluster does not come to rest")

    # What one sees.

    @property
    def status(self):
        return self.resource["status"]

    def condition(self, kind):
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    def reason(self, kind):
        return self.condition(kind)["reason"]

    @property
    def selected(self):
        """The revision that the main Service selects."""
        service = self.objects.get(("Service", self.resource["metadata"]["name"]))
        return service and service["spec"]["selector"][names.LABEL_REVISION]

    def names(self, kind):
        return [obj["metadata"]["name"] for obj in self.of(kind)]


@pytest.fixture
def make_cluster():
    return Cluster


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def reports():
    return {
        "passed": passed_report,
        "failed": failed_report,
        "passed live": passed_live_report,
        "failed live": failed_live_report,
    }
