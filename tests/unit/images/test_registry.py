"""Asking a registry for a digest, against one that answers from a script."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from localcluster.images.registry import find_digest

DIGEST = "sha256:" + "ab" * 32


@pytest.fixture
def registry():
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            assert "oci.image.manifest" in self.headers["Accept"]
            status = {"/v2/gemmaserve/demo/manifests/here": 200, "/v2/gemmaserve/demo/manifests/gone": 404}
            self.send_response(status.get(self.path, 500))
            self.send_header("Docker-Content-Digest", DIGEST)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


def test_a_tag_it_holds_has_its_digest(registry):
    assert find_digest(registry, "gemmaserve/demo", "here") == DIGEST


def test_a_tag_it_does_not_hold_has_none(registry):
    assert find_digest(registry, "gemmaserve/demo", "gone") is None


def test_another_answer_is_an_error_with_the_status(registry):
    with pytest.raises(ConnectionError, match="500"):
        find_digest(registry, "gemmaserve/other", "here")


def test_no_registry_is_an_error_with_the_next_step():
    with pytest.raises(ConnectionError, match="localcluster up"):
        find_digest("127.0.0.1:1", "gemmaserve/demo", "here")
