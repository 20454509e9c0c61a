"""Container images made without a container tool: an OCI archive of a few files."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(
    archive: Path, reference: str, files: Mapping[str, Path], command: Sequence[str], machine: str
) -> None:
    """Write an image as an OCI archive (image-spec 1.0) that `ctr images import` reads.

    Args:
        archive: The file to write.
        reference: The name under which it is imported.
        files: Absolute path in the image to the file that goes there, executable.
        command: The entry point.
        machine: As `platform.machine()` names it.
    """
    layer = _tar({path.lstrip("/"): file.read_bytes() for path, file in files.items()})
    config = {
        "architecture": _MACHINES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": list(command)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: bytes) -> dict[str, object]:
        blobs[f"blobs/sha256/{_digest(content)}"] = content
        media_type = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media_type, "digest": f"sha256:{_digest(content)}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", _json(config)),
        "layers": [blob("layer.v1.tar", layer)],
    }
    named = {"annotations": {"io.containerd.image.name": reference}}
    index = {"schemaVersion": 2, "manifests": [blob("manifest.v1+json", _json(manifest)) | named]}
    whole = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index), **blobs}
    archive.write_bytes(_tar(whole))


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
