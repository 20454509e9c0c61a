"""vLLM flags and environment variables that a field of the resource stands for, and that `engine` may not repeat."""

from typing import Final

from gemmaserve_operator.api.base import Rule

OWNED_FLAGS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("set spec.model.uri instead", ("--model",)),
    ("set spec.model.name instead", ("--served-model-name",)),
    ("set spec.model.revision instead", ("--revision",)),
    ("set spec.engine.maxModelLen instead", ("--max-model-len",)),
    ("set spec.engine.toolCallParser instead", ("--tool-call-parser", "--tool-parser-plugin")),
    ("it is always on; leave it out", ("--enable-auto-tool-choice", "--no-enable-auto-tool-choice")),
    ("set spec.engine.reasoningParser instead", ("--reasoning-parser", "--reasoning-parser-plugin")),
    ("set spec.parallelism.tensor instead", ("--tensor-parallel-size", "-tp")),
    ("set spec.parallelism.pipeline instead", ("--pipeline-parallel-size", "-pp")),
    ("set spec.replicas instead", ("--data-parallel-size", "-dp")),
    ("set spec.storage.cache instead", ("--download-dir",)),
    ("the Service's port is spec.routing.service.port", ("--host", "--port", "--uds", "--headless")),
    ("a file could override any field; write its options as fields and spec.engine.args", ("--config",)),
)
"""What to do instead, and the flags. vLLM also takes underscores for dashes and any unambiguous abbreviation."""

OWNED_ENV: Final[dict[str, str]] = {
    "HF_TOKEN": "set spec.model.tokenSecretRef instead",
    "HUGGING_FACE_HUB_TOKEN": "set spec.model.tokenSecretRef instead",
    "HF_HOME": "set spec.storage.cache instead",
    "XDG_CACHE_HOME": "set spec.storage.cache instead",
    "XDG_CONFIG_HOME": "it is set for the read-only root file system; leave it out",
    "TRITON_CACHE_DIR": "set spec.storage.cache instead",
    "HOME": "it is set for the read-only root file system; leave it out",
}


def _flag(argument: str) -> str:
    """The flag of `--flag=value` or `--flag.key=value`, with dashes, as vLLM's own parser reads it."""
    return argument.split("=", maxsplit=1)[0].split(".", maxsplit=1)[0].replace("_", "-")


def _stands_for(argument: str, owned: str) -> bool:
    flag = _flag(argument)
    return flag == owned or (len(flag) > 3 and flag.startswith("--") and owned.startswith(flag))


def _arguments_rule(instead: str, flags: tuple[str, ...]) -> Rule:
    owned = ", ".join(f"'{flag}'" for flag in flags)
    return Rule(
        cel="!has(self.args) || self.args.all(a, [a.split('=')[0].split('.')[0].replace('_', '-')].all(f, "
        f"[{owned}].all(o, f != o && !(f.size() > 3 && f.startsWith('--') && o.startsWith(f)))))",
        check=lambda engine: not any(_stands_for(argument, flag) for argument in engine.args for flag in flags),
        message=f"spec.engine.args must not hold {' or '.join(flags)}: {instead}",
    )


ARGUMENT_RULES: Final = tuple(_arguments_rule(instead, flags) for instead, flags in OWNED_FLAGS)


def _env_rule(name: str, instead: str) -> Rule:
    return Rule(
        cel=f"!has(self.env) || self.env.all(e, e.name != '{name}')",
        check=lambda engine: all(variable.name != name for variable in engine.env),
        message=f"spec.engine.env must not hold {name}: {instead}",
    )


ENV_RULES: Final = tuple(_env_rule(name, instead) for name, instead in OWNED_ENV.items())
