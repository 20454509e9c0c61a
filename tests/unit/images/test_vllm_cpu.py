"""What makes the index's vLLM and torch run on a CPU, tried on compiled libraries of the same shape."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys

import pytest

from localcluster.images.vllm_cpu import add_nvidia_placeholders, mark_cpu_build

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is not installed; building an image installs it"
)


def compile_library(path, source, *, soname=None, links=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    name = [f"-Wl,-soname,{soname}"] if soname else []
    command = ["gcc", "-shared", "-fPIC", *name, "-o", str(path), "-x", "c", "-", "-x", "none", *map(str, links)]
    subprocess.run(command, input=source.encode(), check=True)


@pytest.fixture
def site_packages(tmp_path):
    """A torch that needs cuBLAS and the CUDA runtime, of which only the runtime is installed."""
    site = tmp_path / "site"
    runtime = site / "nvidia/cu13/lib/libcudart.so.13"
    compile_library(runtime, "int cudaGetDeviceCount(void) { return 7; }", soname="libcudart.so.13")
    cublas = tmp_path / "gone/libcublas.so.13"
    compile_library(cublas, "int cublasCreate_v2(void) { return 0; }", soname="libcublas.so.13")
    torch = """
        int cublasCreate_v2(void); int cudaGetDeviceCount(void);
        int (*table[])(void) = {cublasCreate_v2};
        int devices(void) { return cudaGetDeviceCount(); }
        int multiply(void) { return table[0](); }
    """
    compile_library(site / "torch/lib/libtorch_cuda.so", torch, links=(cublas, runtime))
    return site


def load(site_packages, expression):
    library = site_packages / "torch/lib/libtorch_cuda.so"
    path = f"{site_packages}/torch/lib:{site_packages}/nvidia/cu13/lib"
    code = f"import ctypes; torch = ctypes.CDLL({str(library)!r}); print({expression})"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={"LD_LIBRARY_PATH": path}, capture_output=True, text=True, check=False)


@needs_gcc
def test_without_placeholders_it_does_not_even_load(site_packages):
    assert "libcublas.so.13" in load(site_packages, "1").stderr


@needs_gcc
def test_placeholders_stand_for_what_is_missing_and_only_that(site_packages):
    assert add_nvidia_placeholders(site_packages) == ["libcublas.so.13"]
    done = load(site_packages, "torch.devices()")
    assert done.stdout.strip() == "7", done.stderr


@needs_gcc
def test_a_call_into_a_placeholder_ends_with_a_message(site_packages):
    add_nvidia_placeholders(site_packages)
    done = load(site_packages, "torch.multiply()")
    assert done.returncode != 0
    assert "cublasCreate_v2: NVIDIA's libraries are not in this CPU-only build" in done.stderr


@needs_gcc
def test_adding_them_twice_changes_nothing(site_packages):
    assert add_nvidia_placeholders(site_packages) == add_nvidia_placeholders(site_packages)
    assert load(site_packages, "torch.devices()").stdout.strip() == "7"


@needs_gcc
def test_the_driver_is_never_pretended(tmp_path):
    driver = tmp_path / "gone/libcuda.so.1"
    compile_library(driver, "int cuInit(void) { return 0; }", soname="libcuda.so.1")
    source = "int cuInit(void); int init(void) { return cuInit(); }"
    compile_library(tmp_path / "torch/lib/libcaffe2_nvrtc.so", source, links=(driver,))
    assert add_nvidia_placeholders(tmp_path) == []
    with pytest.raises(OSError, match="libcuda"):
        ctypes.CDLL(str(tmp_path / "torch/lib/libcaffe2_nvrtc.so"))


@pytest.mark.parametrize("version", ["0.32.0", "0.20.2+cpu"])
def test_the_distribution_vllm_reports_a_cpu_build(tmp_path, version):
    (tmp_path / f"vllm_cpu-{version}.dist-info").mkdir()
    mark_cpu_build(tmp_path)
    code = (
        f"import importlib.metadata as m; print(next(m.distributions(name='vllm', path=[{str(tmp_path)!r}])).version)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == version.removesuffix("+cpu") + "+cpu"


def test_without_vllm_there_is_nothing_to_mark(tmp_path):
    with pytest.raises(FileNotFoundError, match="install vllm-cpu first"):
        mark_cpu_build(tmp_path)
