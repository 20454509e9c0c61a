"""An image archive as the OCI image specification 1.0 has it (image-layout.md, manifest.md, config.md)."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from localcluster.archive import write_archive

Files = dict[str, bytes]


def contents(tar: Path) -> Files:
    with tarfile.open(tar) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}  # type: ignore[union-attr]


@pytest.fixture
def archive(tmp_path: Path) -> Files:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    write_archive(tmp_path / "image.tar", "example.test/pause:1", {"/bin/pause": program}, ["/bin/pause"], "x86_64")
    return contents(tmp_path / "image.tar")


def blob(archive: Files, descriptor: dict[str, object]) -> bytes:
    content = archive[str(descriptor["digest"]).replace("sha256:", "blobs/sha256/")]
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert descriptor["size"] == len(content)
    return content


def test_every_descriptor_leads_to_its_blob(archive: Files, tmp_path: Path) -> None:
    assert json.loads(archive["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(archive["index.json"])
    manifest = json.loads(blob(archive, index["manifests"][0]))
    config = json.loads(blob(archive, manifest["config"]))
    layer = blob(archive, manifest["layers"][0])
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    (tmp_path / "layer.tar").write_bytes(layer)
    with tarfile.open(tmp_path / "layer.tar") as opened:
        assert [(member.name, member.mode) for member in opened] == [("bin/pause", 0o755)]


def test_it_says_what_it_is_for(archive: Files) -> None:
    index = json.loads(archive["index.json"])
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "example.test/pause:1"
    config = json.loads(blob(archive, json.loads(blob(archive, index["manifests"][0]))["config"]))
    assert (config["os"], config["architecture"]) == ("linux", "amd64")
    assert config["config"]["Entrypoint"] == ["/bin/pause"]
