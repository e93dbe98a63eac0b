"""What the library analysis finds on a host where everything loads."""

from __future__ import annotations

from collections.abc import Sequence

from linux import Folder

ROOT = "/usr/local/Ascend"
HAL = f"{ROOT}/driver/lib64/driver/libascend_hal.so"
OF_TORCH = ("libtorch_python.so", "libtorch.so", "libtorch_cpu.so", "libc10.so")
OF_CANN = (
    "libhccl.so", "libascendcl.so", "libacl_op_compiler.so", "libge_runner.so", "libgraph.so", "libruntime.so",
    "libprofapi.so", "libacl_tdt_channel.so",
)  # fmt: skip


def analysis_of_cann(host: Folder, folder: str) -> None:
    """Without torch_npu, the two libraries that every program of CANN opens."""
    opened = {"libascendcl.so": ("libascendcl.so", "libruntime.so", "libprofapi.so"), "libhccl.so": ("libhccl.so",)}
    host.observations["libraries"] = {
        "targets": [
            _target(name, name, [*(f"{folder}/{one}" for one in loaded), *([HAL] if name == "libascendcl.so" else [])])
            for name, loaded in opened.items()
        ]
    }


def analysis_of_torch(host: Folder, site: str, folder: str) -> None:
    """torch and torch_npu of the target Python."""
    assert host.python
    tag = "".join(str(host.python["version"]).split(".")[:2])
    module = f"_C.cpython-{tag}-{host.machine.arch}-linux-gnu.so"
    torch = [f"{site}/torch/lib/{name}" for name in OF_TORCH]
    torch_npu = [f"{site}/torch_npu/lib/libtorch_npu.so", *(f"{folder}/{name}" for name in OF_CANN), HAL]
    host.observations["libraries"] = {
        "targets": [
            _target("torch", f"{site}/torch/{module}", torch),
            {**_target("torch_npu", f"{site}/torch_npu/{module}", torch_npu), "lookups_missing": []},
        ]
    }


def _target(name: str, path: str, loaded: Sequence[str]) -> dict[str, object]:
    return {
        "name": name, "path": path, "first_error": "", "dies": False,
        "loaded": [{"name": library.rpartition("/")[2], "path": library} for library in loaded],
        "faults": [], "undefined": [], "lookups_missing": None,
    }  # fmt: skip
