"""The kernel modules of the NPU driver: which are loaded, and for which kernel they were made.

Sources: proc(5) for /proc/modules, depmod(8) for modules.dep; Huawei's driver, run_driver_install.sh (modules go to
/lib/modules/KERNEL/updates, or where DKMS puts them); the efivarfs of the Linux kernel (four bytes before a value).
"""

from __future__ import annotations

import re

from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, Shown, decoded, parsed
from ascend_doctor.records import dataclass

LOADED = "/proc/modules"
FOLDER = "/lib/modules"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NAMES = re.compile(r"(?:drv|asdrv|ascend|dbl|davinci)_\w+|ts_agent|tc_pcidev|npu_peermem", re.ASCII)
MOST_KERNELS = 20


@dataclass(frozen=True)
class Modules:
    """``loaded`` and ``built`` hold modules of the NPU driver only; ``built``: those that ``kernel``, the running one,
    could load. ``made_for``: the kernels that have them; others than the running one are looked at where it has none.
    """

    loaded: tuple[str, ...] | Missing
    kernel: str | Missing
    built: tuple[str, ...] | Missing
    made_for: tuple[str, ...] | Missing
    secure_boot: bool | Missing


def loaded_modules(data: bytes) -> Shown[tuple[str, ...] | Missing]:
    """The driver's modules of /proc/modules, sorted."""
    names = [line.split(" ", 1)[0] for line in decoded(data).splitlines()]
    return _shown(tuple(sorted({name for name in names if NAMES.fullmatch(name)})), len(names))


def listed_modules(data: bytes) -> Shown[tuple[str, ...] | Missing]:
    """The driver's modules of modules.dep, sorted; a file is ``updates/drv_pcie_host.ko.xz: updates/...``."""
    names = re.findall(r"(?m)^(?:[^:\s]*/)?([^:/\s]+)\.ko(?:\.\w+)?:", decoded(data))
    return _shown(tuple(sorted({name for name in names if NAMES.fullmatch(name)})), len(names))


def _shown(found: tuple[str, ...], count: int) -> Shown[tuple[str, ...] | Missing]:
    ours = f"{len(found)} of the NPU driver: {', '.join(found)}" if found else "none of the NPU driver"
    return Shown(found, {"": f"{count} modules, {ours}"})


def is_on(data: bytes) -> bool | Missing:
    """The last of five bytes is the value of the firmware's variable."""
    return data[4] == 1 if len(data) == 5 else Missing(Reason.FAILED, "not the five bytes of this variable")


def collect(host: Host) -> Collected[Modules]:
    """Reads three files; where the running kernel lacks the driver's modules, one for each other kernel."""
    area = Area("modules")
    kernel = host.identity.kernel
    built, made_for = _built(host, kernel)
    secure_boot = parsed(host.read(SECURE_BOOT), is_on)
    state = secure_boot.value
    text = state.reason.value if isinstance(state, Missing) else f"Secure Boot is {'on' if state else 'off'}"
    return area.of(
        Modules(
            loaded=area.take("loaded", parsed(host.read(LOADED), loaded_modules)),
            kernel=area.take("kernel", Parsed(kernel, "identity", {"": f"kernel {kernel}"})),
            built=area.take("built", built),
            made_for=area.take("made_for", made_for),
            secure_boot=area.take("secure_boot", Parsed(state, secure_boot.source, {"": text})),
        )
    )


def _built(
    host: Host, kernel: str | Missing
) -> tuple[Parsed[tuple[str, ...] | Missing], Parsed[tuple[str, ...] | Missing]]:
    if isinstance(kernel, Missing):
        nothing: Parsed[tuple[str, ...] | Missing] = Parsed(kernel, "identity", {})
        return nothing, nothing
    built = _of_kernel(host, kernel)
    if isinstance(built.value, Missing):
        return built, built
    if built.value:
        return built, Parsed((kernel,), built.source, {"": kernel})
    return built, _others(host, kernel)


def _others(host: Host, kernel: str) -> Parsed[tuple[str, ...] | Missing]:
    """The kernels, but the running one, whose folders have modules of the driver."""
    names = host.list(FOLDER)
    if isinstance(names.value, Missing):
        return Parsed(names.value, names.source, {})
    found = []
    for name in [n for n in names.value if n != kernel][:MOST_KERNELS]:
        listed = _of_kernel(host, name)
        if isinstance(listed.value, Missing) and listed.value.reason is not Reason.ABSENT:
            return Parsed(listed.value, listed.source, listed.texts)
        if listed.value and not isinstance(listed.value, Missing):
            found.append(name)
    return Parsed(tuple(found), names.source, {"": ", ".join(found) or f"none of {len(names.value)} kernels"})


def _of_kernel(host: Host, kernel: str) -> Parsed[tuple[str, ...] | Missing]:
    return parsed(host.read(f"{FOLDER}/{kernel}/modules.dep"), listed_modules)
