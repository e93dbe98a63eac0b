"""Writes the whole-snapshot test hosts beside it, and the example of the reports: ``python tests/hosts/generate.py``.

What is said of each host stands here, once; linux.py and ascend.py know how such a machine says it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ascend import (
    DRIVER_SAID,
    LEGEND_950,
    Chip,
    Driver,
    Toolkit,
    cann,
    details,
    device_nodes,
    docker,
    driver,
    duo_table,
    firmware,
    health,
    install_info,
    module_table,
    modules,
    network_conf,
    nnal,
    npu_smi,
    single_table,
    topology,
    unified_table,
)
from linux import (
    DOCKER_CAPABILITIES,
    EULER,
    IMAGE,
    UBUNTU,
    Folder,
    Function,
    Machine,
    container,
    host_root,
    kernel_log,
    linux,
    login,
    modules_of_kernel,
    network,
    nodes,
    pci,
)
from packages import TORCH, VLLM_CANN_8_5, packages

ROOT = Path(__file__).resolve().parent.parent.parent

# Machines. Kunpeng 920: two NUMA nodes a socket.
KUNPENG = Machine("aarch64", 24, 8, 2, 197_632_000, EULER, vendor="Huawei", product="Atlas 800T A2")
KUNPENG_A3 = Machine("aarch64", 80, 8, 2, 197_632_000, EULER, vendor="Huawei", product="Atlas 800T A3")
KUNPENG_TWO = Machine("aarch64", 32, 4, 2, 131_755_000, EULER)
EPYC = Machine("x86_64", 48, 2, 1, 528_215_000, UBUNTU)
EPYC_THREADS = Machine("x86_64", 64, 2, 1, 528_215_000, UBUNTU, threads=2)
VIRTUAL = Machine(
    "x86_64", 8, 1, 1, 32_877_000, UBUNTU, virtual=True, vendor="QEMU", product="Standard PC (Q35 + ICH9, 2009)"
)

# Releases, with the numbers that public copies of their version.info show; 25.6 and 25.7 are known by release only.
HDK_23 = ("19", "20", "21", "22", "23")
HDK_25_0 = Driver(
    "25.0.rc1.1", "7.7.0.1.231", "V100R001C21SPC002B220", ("17", "18", "19", "20", "21"), "[7.0.0,7.7.99]",
    "[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.],[25.0,25.0.]",
)  # fmt: skip
HDK_25_3 = Driver("25.3.rc1", "7.8.0.2.212", "V100R001C23SPC002B212", HDK_23, "[7.0.0,8.9.9]")
HDK_25_5_0 = Driver("25.5.0", "7.8.0.5.216", "V100R001C23SPC005B219", HDK_23, "[7.0.0,8.9.9]")
HDK_25_5_1 = Driver("25.5.1", "7.8.0.6.201", "V100R001C23SPC006B220", HDK_23, "[7.0.0,8.9.9]")
HDK_25_6 = Driver("25.6.rc1", "", "")
HDK_25_7 = Driver("25.7.rc1", "", "")
CANN_8_3 = Toolkit("8.3.RC1", "V100R001C23B085", ("15", "18", "19", "20", "21", "23"))
CANN_8_5 = Toolkit("8.5.0", "V100R001C25SPC001B232", ("15", "18", "19", "20", "21", "23"))
CANN_9_0 = Toolkit("9.0.0", "V100R001C25B046")
CANN_9_1 = Toolkit("9.1.0", "V100R001C11SPC001B243")

# Bus address and NUMA node of each NPU, in the order of npu-smi.
A2_PLACES = (("c1", 6), ("01", 0), ("c2", 6), ("02", 0), ("81", 4), ("41", 2), ("82", 4), ("42", 2))
X86_PLACES = (("21", 0), ("41", 0), ("42", 0), ("61", 0), ("81", 1), ("a1", 1), ("c1", 1), ("e1", 1))
A2_READINGS = ((91.2, 46), (89.7, 45), (93.1, 47), (90.4, 44), (92.5, 48), (88.9, 45), (94.0, 47), (90.8, 46))


def chips_at(places: Sequence[tuple[str, int]], name: str, used: int = 3398, total: int = 65536) -> tuple[Chip, ...]:
    """One chip a card, idle."""
    return tuple(
        Chip(npu, f"0000:{bus.upper()}:00.0", node, name, watts, celsius, used + npu, total)
        for npu, ((bus, node), (watts, celsius)) in enumerate(zip(places, A2_READINGS))
    )


def functions(chips: Sequence[Chip], device: str) -> list[Function]:
    """One PCI function for each bus address: two chips of a card may share it."""
    places = {chip.bus.lower(): chip.node for chip in chips}
    return [Function(bus, node, device, "devdrv_device_driver") for bus, node in places.items()]


def server(
    name: str, machine: Machine, cards: Sequence[Function], hdk: Driver, toolkit: Toolkit, count: int, kernels: str
) -> Folder:
    """A server, not a container, with ``count`` device nodes, Docker, and a toolkit with the kernels of one chip."""
    host = Folder(name, machine)
    linux(host)
    nodes(host)
    pci(host, cards)
    host_root(host)
    device_nodes(host, range(count))
    driver(host, hdk)
    firmware(host, hdk)
    modules_of_kernel(host)
    modules(host)
    kernel_log(host, DRIVER_SAID)
    network(host, reserved="60000-60031")
    install_info(host)
    cann(host, toolkit, (kernels,))
    docker(host)
    login(host, uid=0, gids=(0,))
    packages(host, TORCH[toolkit.version])
    return host


def a2_healthy() -> Folder:
    chips = chips_at(A2_PLACES, "910B3")
    host = server("a2-healthy", KUNPENG, functions(chips, "d802"), HDK_25_5_0, CANN_8_5, 8, "ascend910b")
    network_conf(host, len(chips))
    npu_smi(host, single_table(HDK_25_5_0.version, chips))
    topology(host, chips, lambda one, other: "HCCS")
    return host


def a2_deep_healthy() -> Folder:
    """As a2-healthy, in a snapshot that was taken in depth: npu-smi was asked for details of each card."""
    host = a2_healthy()
    host.name = "a2-deep-healthy"
    details(host, chips_at(A2_PLACES, "910B3"), HDK_25_5_0)
    return host


def a2_container_healthy() -> Folder:
    """Docker, two of eight cards mapped: npu-smi shows these, /sys shows the machine."""
    chips = chips_at(A2_PLACES, "910B3")
    host = Folder("a2-container-healthy", replace(KUNPENG, image=IMAGE), hostname="5f3a9c1e7b42")
    linux(host)
    nodes(host)
    pci(host, functions(chips, "d802"))
    container(host, "5f3a9c1e7b42d0846a1b9be1c0f2a7d35e684b0c9f1d2e3a4b5c6d7e8f901234", CONTAINER_MOUNTS)
    device_nodes(host, (4, 5))
    driver(host, HDK_25_5_0, in_container=True)
    modules(host)
    install_info(host)
    cann(host, CANN_8_5, ("ascend910b",))
    npu_smi(host, single_table(HDK_25_5_0.version, chips[4:6]))
    login(host, uid=0, gids=(0,), capabilities=DOCKER_CAPABILITIES, seccomp=2)
    packages(host, VLLM_CANN_8_5)
    nnal(host, CANN_8_5)
    host.command(("dmesg",), missing="denied")
    return host


CONTAINER_MOUNTS = """\
1204 1033 0:98 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/QX3T,upperdir=/var/lib/docker/overlay2/8c1/diff,workdir=/var/lib/docker/overlay2/8c1/work
1205 1204 0:101 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1206 1204 0:102 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1208 1204 0:104 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
1211 1206 0:106 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=67108864k
1213 1204 253:0 /usr/local/Ascend/driver/lib64 /usr/local/Ascend/driver/lib64 rw,relatime - ext4 /dev/mapper/openeuler-root rw
1214 1204 253:0 /usr/local/Ascend/driver/version.info /usr/local/Ascend/driver/version.info rw,relatime - ext4 /dev/mapper/openeuler-root rw
1215 1204 253:0 /usr/local/sbin/npu-smi /usr/local/sbin/npu-smi rw,relatime - ext4 /dev/mapper/openeuler-root rw
1216 1204 253:0 /etc/ascend_install.info /etc/ascend_install.info rw,relatime - ext4 /dev/mapper/openeuler-root rw
"""  # noqa: E501


def a3_healthy() -> Folder:
    """Eight modules of two dies; module n on node n: no public capture says where they are."""
    buses = [f"{number:02X}" for number in range(0x9D, 0x80, -4)]
    chips = tuple(
        Chip(npu, f"0000:{int(bus, 16) + 2 * die:02X}:00.0", npu, "Ascend910", watts, celsius, 3120 + die, 65536,
             number=die, device=2 * npu + die)
        for npu, (bus, (watts, celsius)) in enumerate(zip(buses, A2_READINGS))
        for die in (0, 1)
    )  # fmt: skip
    cards = functions(chips, "d803")
    host = server("a3-healthy", KUNPENG_A3, cards, HDK_25_5_1, CANN_9_0, 16, "ascend910_93")
    npu_smi(host, module_table(HDK_25_5_1.version, chips))
    return host


def duo_healthy() -> Folder:
    """Four Atlas 300I Duo: NPU ids of 310P follow the place in the PCI tree."""
    cards = ((0, "01", 0), (32, "02", 0), (32768, "81", 2), (32800, "82", 2))
    memory = ((1615, 44278), (1322, 43693))
    chips = tuple(
        Chip(npu, f"0000:{bus}:00.0", node, "310P3", None, 49 + die, *memory[die], number=die, device=2 * place + die)
        for place, (npu, bus, node) in enumerate(cards)
        for die in (0, 1)
    )
    host = server("310p-healthy", KUNPENG_TWO, functions(chips, "d500"), HDK_25_3, CANN_8_3, 8, "ascend310p")
    npu_smi(host, duo_table(HDK_25_3.version, chips))
    return host


def x86_healthy() -> Folder:
    chips = chips_at(X86_PLACES, "910B1")
    host = server("x86-healthy", EPYC, functions(chips, "d802"), HDK_25_5_0, CANN_8_5, 8, "ascend910b")
    packages(host, VLLM_CANN_8_5)
    nnal(host, CANN_8_5)
    network_conf(host, len(chips))
    npu_smi(host, single_table(HDK_25_5_0.version, chips))
    topology(host, chips, lambda one, other: "HCCS")
    return host


def pr_healthy() -> Folder:
    """Atlas 350 cards on PCIe. Their link is not published: 16.0 GT/s x16 is this machine's own most."""
    chips = chips_at(X86_PLACES, "Ascend950PR", 5239, 131072)
    host = server("950-healthy", EPYC_THREADS, functions(chips, "d806"), HDK_25_7, CANN_9_1, 8, "ascend950")
    npu_smi(host, unified_table(HDK_25_7.version, chips))
    topology(host, chips, lambda one, other: "SYS", LEGEND_950)
    return host


def ub_healthy() -> Folder:
    """Chips behind the unified bus: no bus address, no PCI function; only the topology says which CPUs are near."""
    chips = [replace(c, bus="NA", node=c.npu // 4) for c in chips_at(X86_PLACES, "Ascend950DT", 5104, 98304)]
    host = server("950-ub-healthy", EPYC_THREADS, [], HDK_25_6, CANN_9_1, 8, "ascend950")
    npu_smi(host, unified_table(HDK_25_6.version, chips))
    topology(host, chips, lambda one, other: "UB" if one.node == other.node else "SYS", LEGEND_950)
    return host


def bare_linux() -> Folder:
    """A virtual machine that has nothing of Ascend."""
    host = Folder("bare-linux", VIRTUAL)
    linux(host)
    nodes(host)
    pci(host, [])
    host_root(host)
    login(host, uid=1001, gids=(1001,))
    modules_of_kernel(host)
    host.command(("dmesg",), missing="denied")
    for argv in (("npu-smi", "info"), ("npu-smi", "info", "-t", "topo")):
        host.command(argv, missing="absent")
    host.expect = [
        {"check": check, "verdict": "fail", "severity": "error"} for check in ("ascend.present", "npu.answers")
    ]
    return host


def example() -> Folder:
    """A faulty A2 server for the reports: what several administrators and one broken card left behind."""
    chips = list(chips_at(A2_PLACES, "910B3"))
    chips[5] = replace(chips[5], health="Alarm", celsius=52)
    cards = [replace(c, width=8) if c.bus.startswith("0000:02") else c for c in functions(chips, "d802")]
    host = server("example", KUNPENG, cards, HDK_25_0, CANN_9_1, 8, "ascend910b")
    host.hostname = "node-a2-07"
    node_kib = KUNPENG.node_kib
    nodes(host, free={6: 731_204}, cached={6: node_kib * 8 // 10})
    npu_smi(host, single_table(HDK_25_0.version, chips))
    health(host, chips[5], "80E01801", "node type=HBM, sensor type=Memory")
    host.file("/sys/kernel/mm/transparent_hugepage/defrag", "[always] defer defer+madvise madvise never\n")
    path = f"{CANN_9_1.home}/devlib:/opt/ops/lib:{host.env['LD_LIBRARY_PATH']}"
    host.env.update({"LD_LIBRARY_PATH": path, "ASCEND_MEM_SIZE": "28000"})
    return host


HOSTS = (
    a2_healthy, a2_deep_healthy, a2_container_healthy, a3_healthy, duo_healthy, x86_healthy, pr_healthy, ub_healthy,
    bare_linux,
)  # fmt: skip


def main(root: Path) -> None:
    for make in HOSTS:
        host = make()
        host.write(root / "tests" / "hosts" / host.name)
    example().write(root / "reports" / "example")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
