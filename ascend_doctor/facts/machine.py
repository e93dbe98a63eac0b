"""Who made this machine: the names in its firmware, which a virtual machine has from its hypervisor.

Source: Linux kernel, drivers/firmware/dmi-id.c; SMBIOS specification, System Information.
"""

from __future__ import annotations

from ascend_doctor.facts.kernel import one_line
from ascend_doctor.host import Area, Collected, Host, Missing, parsed
from ascend_doctor.records import dataclass

SYSFS = "/sys/class/dmi/id"


@dataclass(frozen=True)
class Machine:
    """Such as ``Huawei``, ``Atlas 800T A2``, or ``QEMU``, ``KVM Virtual Machine``; absent on boards without SMBIOS."""

    vendor: str | Missing
    product: str | Missing


def collect(host: Host) -> Collected[Machine]:
    """Reads two files, starts nothing."""
    area = Area("machine")
    return area.of(
        Machine(
            vendor=area.take("vendor", parsed(host.read(f"{SYSFS}/sys_vendor"), one_line)),
            product=area.take("product", parsed(host.read(f"{SYSFS}/product_name"), one_line)),
        )
    )
