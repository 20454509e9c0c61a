"""Run while an image is built: puts the plugin in a file in the place of gemmaserve-parser's own."""

import sys
from importlib.metadata import distribution
from pathlib import Path


def replace(plugin: Path) -> None:
    """Copy `plugin` beside the installed distribution, and name it where the distribution names its own."""
    installed = distribution("gemmaserve-parser")
    target = Path(str(installed.locate_file(plugin.name)))
    target.write_text(plugin.read_text())
    (entry_points,) = [Path(str(file.locate())) for file in installed.files or [] if file.name == "entry_points.txt"]
    ours = "gemmaserve_parser.vllm_plugin:register"
    text = entry_points.read_text()
    if ours not in text:
        sys.exit(f"{entry_points} does not name {ours}")
    entry_points.write_text(text.replace(ours, f"{plugin.stem}:register"))


if __name__ == "__main__":
    replace(Path(sys.argv[1]))
