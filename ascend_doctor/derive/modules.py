"""Whether the NPU driver's modules are in the kernel of a host whose cards need them."""

from __future__ import annotations

from ascend_doctor.derive import rows
from ascend_doctor.facts.container import Container
from ascend_doctor.facts.driver import Driver
from ascend_doctor.facts.modules import Modules
from ascend_doctor.facts.pci import Pci
from ascend_doctor.host import Missing, Reason, keyed
from ascend_doctor.records import dataclass

CARRIERS = ("drv_pcie_host", "drv_vpcie", "tc_pcidev")
"""One of them takes the cards: on a machine, or in a guest with a part of one (the driver's own install scripts)."""

GUESTS = "vfio-pci"


@dataclass(frozen=True)
class DriverModules:
    """``built``: whether ``kernel`` has them on disk; ``others``: kernels that have them where it has not."""

    loaded: bool | Missing
    built: bool | Missing
    kernel: str | Missing
    others: str
    secure_boot: bool | Missing
    reads: tuple[str, ...]


@rows("modules.driver")
def driver_modules(
    modules: Modules, pci: Pci, driver: Driver, container: Container
) -> tuple[DriverModules, ...] | Missing:
    """One row on a host with a driver package and a card for it; a guest's cards (vfio) and containers need none."""
    if isinstance(container.inside, Missing):
        return container.inside
    if container.inside:
        return ()
    if isinstance(driver.version, Missing):
        return () if driver.version.reason is Reason.ABSENT else driver.version
    if isinstance(pci.npus, Missing):
        return () if pci.npus.reason is Reason.ABSENT else pci.npus
    held = {address: function.driver for address, function in pci.npus.items() if function.driver != GUESTS}
    unseen = [name for name in held.values() if isinstance(name, Missing) and name.reason is not Reason.ABSENT]
    if len(unseen) == len(held):
        return unseen[0] if unseen else ()
    built = modules.built if isinstance(modules.built, Missing) else any(c in modules.built for c in CARRIERS)
    others = "" if isinstance(modules.made_for, Missing) else ", ".join(modules.made_for)
    paths = [f"{keyed('pci.npus', address)}.driver" for address in held]
    facts = ("modules.loaded", "modules.built", "modules.made_for", "modules.kernel")
    return (
        DriverModules(
            _loaded(modules, tuple(held.values())),
            built,
            modules.kernel,
            others,
            modules.secure_boot,
            (*facts, *paths[:1]),
        ),
    )


def _loaded(modules: Modules, drivers: tuple[str | Missing, ...]) -> bool | Missing:
    """A card that a driver holds has it in the kernel, whatever the list of modules says."""
    if any(isinstance(name, str) for name in drivers):
        return True
    if isinstance(modules.loaded, Missing):
        return modules.loaded
    if any(carrier in modules.loaded for carrier in CARRIERS):
        return True
    unseen = [name for name in drivers if isinstance(name, Missing) and name.reason is not Reason.ABSENT]
    return unseen[0] if unseen else False
