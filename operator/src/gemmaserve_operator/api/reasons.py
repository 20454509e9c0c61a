"""Every reason that conditions and events give. Each has its section in docs/troubleshooting.md.

Constants of the public interface: users and alerts match on them.
"""

from typing import Final

SERVING: Final = "Serving"
SCALED_TO_ZERO: Final = "ScaledToZero"
NOT_SERVING: Final = "NotServing"
AS_EXPECTED: Final = "AsExpected"
UP_TO_DATE: Final = "UpToDate"
ROLLOUT_UNFINISHED: Final = "RolloutUnfinished"

WAITING_FOR_GATE_SLOT: Final = "WaitingForGateSlot"
PARSER_REGRESSIONS_RUNNING: Final = "ParserRegressionsRunning"
PARSER_REGRESSIONS_PASSED: Final = "ParserRegressionsPassed"
PARSER_REGRESSIONS_FAILED: Final = "ParserRegressionsFailed"
IMAGE_DIGEST_UNKNOWN: Final = "ImageDigestUnknown"

LIVE_CHECK_PENDING: Final = "LiveCheckPending"
LIVE_CHECK_RUNNING: Final = "LiveCheckRunning"
LIVE_CHECK_PASSED: Final = "LiveCheckPassed"
LIVE_CHECK_FAILED: Final = "LiveCheckFailed"
LIVE_CHECK_SKIPPED: Final = "LiveCheckSkipped"

STOPPING_OLD_REVISION: Final = "StoppingOldRevision"
STARTING_PODS: Final = "StartingPods"
SWITCHING_TRAFFIC: Final = "SwitchingTraffic"
DRAINING_OLD_REVISION: Final = "DrainingOldRevision"
PAUSED: Final = "Paused"
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
REPLICAS_NOT_READY: Final = "ReplicasNotReady"

IMAGE_PULL_ERROR: Final = "ImagePullError"
SECRET_NOT_FOUND: Final = "SecretNotFound"  # noqa: S105 - a reason, not a secret
CLAIM_NOT_BOUND: Final = "ClaimNotBound"
INSUFFICIENT_GPU: Final = "InsufficientGPU"
UNSCHEDULABLE: Final = "Unschedulable"
CONTAINER_CONFIG_ERROR: Final = "ContainerConfigError"
CONTAINER_OOM_KILLED: Final = "ContainerOOMKilled"
STARTUP_TIMEOUT: Final = "StartupTimeout"
CRASH_LOOP: Final = "CrashLoop"
PODS_REFUSED: Final = "PodsRefused"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
ADMISSION_DENIED: Final = "AdmissionDenied"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
IMMUTABLE_FIELD: Final = "ImmutableField"
NAME_CONFLICT: Final = "NameConflict"
WRITE_REFUSED: Final = "WriteRefused"
INVALID_SPEC: Final = "InvalidSpec"
