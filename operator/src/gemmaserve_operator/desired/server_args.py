"""The arguments of `vllm serve`, and the volumes behind the model's uri."""

from dataclasses import dataclass
from typing import Any, Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.spec import RevisionSpec

MODELS_PATH: Final = "/models"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What vLLM is told to load, and the volume it comes from, if any."""

    argument: str
    volume: dict[str, Any] | None = None


def model_source(uri: str) -> ModelSource:
    """Where vLLM finds the weights of a uri whose scheme admission has checked."""
    scheme, _, rest = uri.partition("://")
    if scheme == "pvc":
        claim, _, path = rest.partition("/")
        volume = {"name": "model", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
        return ModelSource(f"{MODELS_PATH}/{path}".rstrip("/"), volume)
    if scheme == "oci":
        return ModelSource(MODELS_PATH, {"name": "model", "image": {"reference": rest, "pullPolicy": "IfNotPresent"}})
    return ModelSource(rest)


def build_server_args(spec: RevisionSpec, *, served_name: str) -> list[str]:
    """All arguments: the model, then what fields say, then the user's own."""
    engine = spec.engine
    args = [
        model_source(spec.model.uri).argument,
        f"--port={names.SERVING_PORT}",
        f"--served-model-name={spec.model.name or served_name}",
        f"--tensor-parallel-size={spec.parallelism.tensor}",
        f"--pipeline-parallel-size={spec.parallelism.pipeline}",
        "--enable-auto-tool-choice",
        f"--tool-call-parser={engine.effective_tool_call_parser}",
        f"--reasoning-parser={engine.effective_reasoning_parser}",
    ]
    if spec.model.revision:
        args.append(f"--revision={spec.model.revision}")
    if engine.max_model_len is not None:
        args.append(f"--max-model-len={engine.max_model_len}")
    return [*args, *engine.args]
