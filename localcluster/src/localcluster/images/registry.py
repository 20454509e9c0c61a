"""The few questions asked of an image registry that listens with plain HTTP on this machine."""

from __future__ import annotations

import urllib.error
import urllib.request

_MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


def find_digest(registry: str, repository: str, tag: str) -> str | None:
    """The digest (`sha256:...`) under which `registry` holds the tag, or None if it does not.

    Args:
        registry: `host:port`.
        repository: as in `gemmaserve/serving`.
        tag: the image's tag.

    Raises:
        ConnectionError: no registry answers there.
    """
    # The local registry has no certificate; find_digest is never used for another one.
    request = urllib.request.Request(
        f"http://{registry}/v2/{repository}/manifests/{tag}", method="HEAD", headers={"Accept": _MANIFESTS}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
            digest: str | None = response.headers.get("Docker-Content-Digest")
            return digest
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise ConnectionError(f"registry {registry} answered {error.code} for {repository}:{tag}") from error
    except OSError as error:
        raise ConnectionError(
            f"no image registry answers at {registry} ({error}); `localcluster up` starts one"
        ) from error
