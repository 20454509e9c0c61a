"""Which vLLM versions are served by which adapter, and the refusal of the others."""

import pytest

from gemmaserve_parser.adapters.versions import ALLOW_UNTESTED, UntestedVllmError, generation


@pytest.mark.parametrize("version", ["0.20.2", "0.20.2+cpu", "0.21.0", "0.23.4"])
def test_versions_before_the_parser_engine(version):
    assert generation(version) == "vllm_0_20"


@pytest.mark.parametrize("version", ["0.24.0", "0.28.0", "0.32.0+cpu", "0.33.0", "0.33.7", "0.33.1rc1"])
def test_versions_with_the_parser_engine(version):
    assert generation(version) == "vllm_0_24"


@pytest.mark.parametrize("version", ["0.20.1", "0.9.0", "0.34.0", "1.0.0"])
def test_another_version_is_refused_and_the_range_named(version, monkeypatch):
    monkeypatch.delenv(ALLOW_UNTESTED, raising=False)
    with pytest.raises(UntestedVllmError, match=rf"0\.20\.2 to 0\.33.*{version}.*{ALLOW_UNTESTED}=1"):
        generation(version)


@pytest.mark.parametrize(("version", "adapter"), [("0.19.0", "vllm_0_20"), ("0.40.0", "vllm_0_24")])
def test_another_version_on_ones_own_responsibility(version, adapter, monkeypatch):
    monkeypatch.setenv(ALLOW_UNTESTED, "1")
    assert generation(version) == adapter
