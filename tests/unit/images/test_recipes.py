"""The key by which an image is found again: it changes with what goes in, and with nothing else."""

from __future__ import annotations

import pytest

from localcluster.images.build import REPOSITORY, recipe_of
from localcluster.images.recipes import Recipe, image_names


@pytest.fixture
def repository(tmp_path):
    for name, text in {"base/file": "1", "top/a.py": "a", "top/deep/b.py": "b", "elsewhere": "x"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


BASE = Recipe("base", ("base",))
TOP = Recipe("top", ("top",), parent=BASE)


@pytest.mark.parametrize("name", ["top/a.py", "top/deep/b.py", "base/file", "top/new.py"])
def test_an_edit_of_a_source_or_of_the_parents_changes_the_key(repository, name):
    before = TOP.key(repository)
    (repository / name).write_text("edited")
    assert TOP.key(repository) != before


def test_a_renamed_source_changes_the_key(repository):
    before = TOP.key(repository)
    (repository / "top/a.py").rename(repository / "top/c.py")
    assert TOP.key(repository) != before


def test_an_option_changes_the_key(repository):
    assert Recipe("top", ("top",), parent=BASE, options=("x",)).key(repository) != TOP.key(repository)


@pytest.mark.parametrize("name", ["elsewhere", "top/__pycache__/a.cpython-311.pyc"])
def test_nothing_else_changes_it(repository, name):
    before = TOP.key(repository)
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("edited")
    assert TOP.key(repository) == before


def test_a_missing_source_is_named(repository):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Recipe("x", ("nowhere",)).key(repository)


def test_upstreams_parser_makes_images_of_other_names_than_ours():
    def name(image, **options):
        recipe = recipe_of(image, **options)
        return image_names(recipe, REPOSITORY)[recipe.name]

    ours = {name(image) for image in ("serving", "demo")}
    forced = {name(image, parser="upstream", skip_smoke=True) for image in ("serving", "demo")}
    checked = {name(image, parser="upstream") for image in ("serving", "demo")}
    assert len(ours | forced | checked) == 6


def test_names_are_of_the_whole_chain(repository):
    names = image_names(TOP, repository)
    assert names == {
        recipe.name: f"localhost/gemmaserve/{recipe.name}:{recipe.key(repository)}" for recipe in (BASE, TOP)
    }
