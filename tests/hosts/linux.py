"""What any Linux shows in /proc, /sys, /etc and /dev: the part of a test host that knows nothing of Ascend."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Distro:
    name: str
    version: str
    label: str
    id: str
    kernel: str
    glibc: str
    python: str
    site: tuple[str, ...]
    multiarch: bool
    prefix: str = "/usr"
    """Where Python is installed."""


EULER = Distro(
    "openEuler", "22.03", "22.03 (LTS-SP4)", "openEuler", "5.10.0-216.0.0.115.oe2203sp4", "glibc 2.34", "3.9.9",
    ("/usr/local/lib64/python3.9/site-packages", "/usr/lib64/python3.9/site-packages"),
    multiarch=False,
)  # fmt: skip
UBUNTU = Distro(
    "Ubuntu", "22.04", "22.04.5 LTS (Jammy Jellyfish)", "ubuntu", "5.15.0-119-generic", "glibc 2.35", "3.10.12",
    ("/usr/local/lib/python3.10/dist-packages", "/usr/lib/python3/dist-packages"),
    multiarch=True,
)  # fmt: skip

IMAGE = replace(
    UBUNTU, python="3.11.13", site=("/usr/local/python3.11.13/lib/python3.11/site-packages",),
    prefix="/usr/local/python3.11.13",
)  # fmt: skip
"""Ubuntu as the images of CANN are built: with a Python of their own."""


@dataclass(frozen=True)
class Machine:
    arch: str
    cpus_of_node: int
    nodes: int
    nodes_of_socket: int
    node_kib: int
    distro: Distro
    threads: int = 1
    virtual: bool = False
    vendor: str = ""
    product: str = ""
    image: Distro | None = None
    """The distribution of a container on this machine; the kernel stays the machine's."""

    @property
    def seen(self) -> Distro:
        return self.image or self.distro

    @property
    def kernel(self) -> str:
        return f"{self.distro.kernel}.{self.arch}" if self.distro is EULER else self.distro.kernel

    @property
    def cpus(self) -> int:
        return self.cpus_of_node * self.nodes * self.threads

    def cpulist(self, node: int) -> str:
        """Sibling threads are numbered after all cores, as firmware does."""
        first = node * self.cpus_of_node
        cores = self.cpus_of_node * self.nodes
        ranges = [f"{first + t * cores}-{first + t * cores + self.cpus_of_node - 1}" for t in range(self.threads)]
        return ",".join(ranges)


@dataclass(frozen=True)
class Function:
    """A PCI function; ``bus`` is its address, ``width`` and ``full_width`` its link now and at most."""

    bus: str
    node: int
    device: str
    driver: str
    vendor: str = "19e5"
    kind: str = "0x120000"
    width: int = 16
    full_width: int = 16
    speed: str = "16.0 GT/s PCIe"


@dataclass
class Folder:
    """A snapshot in the making; ``write`` replaces the folder of that name."""

    name: str
    machine: Machine
    hostname: str = ""
    taken_at: str = "2026-11-30T09:00:00Z"
    uid: int = 0
    gids: tuple[int, ...] = (0,)
    env: dict[str, str | None] = field(default_factory=dict)
    python: dict[str, object] | None = None
    files: dict[str, str | bytes] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    commands: list[dict[str, object]] = field(default_factory=list)
    entries: dict[str, dict[str, object]] = field(default_factory=dict)
    expect: list[dict[str, str]] = field(default_factory=list)
    observations: dict[str, object] = field(default_factory=dict)

    def file(self, path: str, content: str | bytes, mode: str = "") -> None:
        self.files[path] = content
        if mode:
            self.entry(path, type="file", mode=mode, uid=0, gid=0)

    def entry(self, path: str, **answer: object) -> None:
        self.entries[path] = {**self.entries.get(path, {"path": path}), **answer}

    def folder(self, path: str, *names: str) -> None:
        """A folder with files whose content nobody reads."""
        self.entry(path, type="dir", mode="0755", uid=0, gid=0)
        for name in names:
            self.entry(f"{path}/{name}", type="file", mode="0644", uid=0, gid=0)

    def link(self, path: str, target: str) -> None:
        self.entry(path, type="link", target=target)

    def command(self, argv: Sequence[str], stdout: str = "", missing: str = "", rc: int = 0) -> None:
        answer: dict[str, object] = {"argv": list(argv)}
        if missing:
            answer["missing"] = missing
        else:
            name = f"commands/{'-'.join(argv).replace('/', '_').replace('--', '-')}.out"
            self.outputs[name] = stdout
            answer.update(rc=rc, stdout=name)
        self.commands.append(answer)

    def write(self, to: Path) -> None:
        for old in ("files", "commands", "observations"):
            shutil.rmtree(to / old, ignore_errors=True)
        observed = {
            f"observations/{area}.json": json.dumps(value, indent=1) + "\n" for area, value in self.observations.items()
        }
        for path, content in {**{f"files{p}": c for p, c in self.files.items()}, **self.outputs, **observed}.items():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        to.mkdir(parents=True, exist_ok=True)
        (to / "snapshot.json").write_text(self._index(), encoding="utf-8")

    def _index(self) -> str:
        """One line for each answer, so that a reader and a diff see what changed."""
        head: dict[str, object] = {
            "schema": "ascend-doctor/snapshot/1",
            "taken_at": self.taken_at,
            "complete": True,
            "redacted": "none",
            "identity": {
                "hostname": self.hostname or self.name, "arch": self.machine.arch, "kernel": self.machine.kernel,
                "uid": self.uid, "gids": list(self.gids),
            },
            "env": self.env,
            "python": self.python,
            "expect": self.expect or None,
        }  # fmt: skip
        lines = [f'  "{key}": {json.dumps(value)}' for key, value in head.items() if value is not None and key != "env"]
        lines.append(
            '  "env": ' + _one_a_line([f"{json.dumps(k)}: {json.dumps(v)}" for k, v in self.env.items()], "{}")
        )
        lines.append('  "commands": ' + _one_a_line([json.dumps(c) for c in self.commands], "[]"))
        lines.append('  "entries": ' + _one_a_line([json.dumps(e) for e in self.entries.values()], "[]"))
        return "{\n" + ",\n".join(lines) + "\n}\n"


def _one_a_line(items: Iterable[str], brackets: str) -> str:
    inside = ",\n    ".join(items)
    return f"{brackets[0]}\n    {inside}\n  {brackets[1]}" if inside else brackets


THP = "/sys/kernel/mm/transparent_hugepage"
KHUGEPAGED = {
    "alloc_sleep_millisecs": 60000, "defrag": 1, "full_scans": 12, "max_ptes_none": 511, "max_ptes_shared": 256,
    "max_ptes_swap": 64, "pages_collapsed": 0, "pages_to_scan": 4096, "scan_sleep_millisecs": 10000,
}  # fmt: skip
SYSCTLS = {
    "vm/swappiness": 10, "vm/overcommit_memory": 0, "vm/overcommit_ratio": 50, "vm/nr_hugepages": 0,
    "vm/min_free_kbytes": 67584, "vm/zone_reclaim_mode": 0, "vm/max_map_count": 65530,
    "vm/compaction_proactiveness": 20, "kernel/numa_balancing": 0, "kernel/pid_max": 4194304,
    "kernel/shmmax": 18446744073692774399, "fs/file-max": 9223372036854775807,
}  # fmt: skip


AUXV = struct.pack("<8Q", 16, 0x0FFFFFFF, 6, 4096, 17, 100, 0, 0)
"""AT_HWCAP, AT_PAGESZ, AT_CLKTCK and the end, as the kernel hands them to a program."""


def linux(host: Folder) -> None:
    """Kernel, distribution and memory settings of a machine, as an administrator leaves a server."""
    machine, distro = host.machine, host.machine.seen
    host.observations["libraries"] = {"targets": []}
    host.file("/etc/os-release", _os_release(distro))
    compiler = "gcc_old (GCC) 10.3.1" if machine.distro is EULER else "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0"
    host.file("/proc/version", f"Linux version {machine.kernel} (build@host) ({compiler}) #1 SMP\n")
    host.file("/proc/cmdline", _cmdline(machine))
    host.file("/proc/cpuinfo", _cpuinfo(machine))
    host.file("/proc/self/auxv", AUXV)
    for path in ("online", "possible", "present"):
        host.file(f"/sys/devices/system/cpu/{path}", f"0-{machine.cpus - 1}\n")
    host.file("/sys/devices/system/cpu/isolated", "\n")
    host.file("/sys/devices/system/cpu/nohz_full", "(null)\n")
    host.file(f"{THP}/enabled", "always [madvise] never\n")
    host.file(f"{THP}/defrag", "always defer defer+madvise [madvise] never\n")
    host.file(f"{THP}/shmem_enabled", "always within_size advise [never] deny force\n")
    host.file(f"{THP}/use_zero_page", "1\n")
    host.file(f"{THP}/hpage_pmd_size", "2097152\n")
    for name, value in KHUGEPAGED.items():
        host.file(f"{THP}/khugepaged/{name}", f"{value}\n")
    for name, value in SYSCTLS.items():
        if name != "kernel/numa_balancing" or machine.nodes > 1:
            host.file(f"/proc/sys/{name}", f"{value}\n")
    if machine.product:
        host.file("/sys/class/dmi/id/sys_vendor", f"{machine.vendor}\n")
        host.file("/sys/class/dmi/id/product_name", f"{machine.product}\n")
    host.entry("/", type="dir", mode="0755", uid=0, gid=0, statvfs=_space(439 << 30, 371 << 30))
    host.entry("/tmp", type="dir", mode="1777", uid=0, gid=0, statvfs=_space(439 << 30, 371 << 30))
    names = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgomp.so.1")
    host.folder(libraries(host), *names)
    loader(host, [f"{libraries(host)}/{name}" for name in names])
    host.command(("getconf", "GNU_LIBC_VERSION"), f"{distro.glibc}\n")
    host.file("/proc/uptime", f"{UPTIME}.41 {UPTIME * machine.cpus}.08\n")
    network(host)


NO_SOCKETS = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
SSHD = (
    "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 28319 1 0 100 0 0 10 0"
)
ROUTES = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.17
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
"""
INTERFACES = {"lo": ("unknown", 65536), "eth0": ("up", 1500)}


def network(host: Folder, reserved: str = "") -> None:
    """One interface, sshd, and the kernel's own range of outgoing ports."""
    host.file("/proc/net/tcp", f"{NO_SOCKETS}\n{SSHD}\n")
    host.file("/proc/net/tcp6", f"{NO_SOCKETS}\n")
    host.file("/proc/net/fib_trie", ROUTES)
    host.file("/proc/net/if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n")
    host.file("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
    host.file("/proc/sys/net/ipv4/ip_local_reserved_ports", f"{reserved}\n")
    for name, (state, mtu) in INTERFACES.items():
        host.file(f"/sys/class/net/{name}/operstate", f"{state}\n")
        host.file(f"/sys/class/net/{name}/mtu", f"{mtu}\n")


def modules_of_kernel(host: Folder) -> None:
    """What depmod lists for the running kernel, a few of them."""
    lines = "kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko\nkernel/fs/xfs/xfs.ko:\n"
    host.file(f"/lib/modules/{host.machine.kernel}/modules.dep", lines)


UPTIME = 1_209_600
"""Seconds: a server that was started two weeks ago."""


def kernel_log(host: Folder, lines: Sequence[tuple[float, str]] = ()) -> None:
    """dmesg as root sees it: the start of a machine, and ``lines`` with their seconds."""
    said = [
        (0.0, f"Linux version {host.machine.kernel}"),
        (1.204411, "pcieport 0000:00:00.0: AER: enabled with IRQ 24"),
    ]
    said += lines
    host.command(("dmesg",), "".join(f"[{seconds:12.6f}] {text}\n" for seconds, text in said))


def libraries(host: Folder) -> str:
    return f"/usr/lib/{host.machine.arch}-linux-gnu" if host.machine.seen.multiarch else "/usr/lib64"


def loader(host: Folder, paths: Sequence[str], configured: dict[str, Sequence[str]] | None = None) -> None:
    """The loader's cache and the folders that ldconfig made it from: name of the .conf file -> folders."""
    host.file("/etc/ld.so.conf", "include ld.so.conf.d/*.conf\n")
    host.entry("/etc/ld.so.conf.d", type="dir", mode="0755", uid=0, gid=0)
    for name, folders in (configured or {}).items():
        host.file(f"/etc/ld.so.conf.d/{name}", "".join(f"{folder}\n" for folder in folders), mode="0440")
    host.file("/etc/ld.so.cache", _loader_cache(paths), mode="0644")


def _loader_cache(paths: Sequence[str]) -> bytes:
    """As glibc 2.32 and newer write it (dl-cache.h): a head, an entry of 24 bytes for each library, the strings."""
    strings, entries = b"", b""
    start = 48 + 24 * len(paths)
    for path in paths:
        name = path.rpartition("/")[2]
        place = start + len(strings)
        entries += struct.pack("<iIIIQ", 3, place, place + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    return struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(paths), len(strings), 2, 0) + entries + strings


def _os_release(distro: Distro) -> str:
    pretty = f"{distro.name} {distro.label.split(' (')[0] if distro.multiarch else distro.label}"
    return (
        f'NAME="{distro.name}"\nVERSION="{distro.label}"\nID={distro.id}\n'
        f'VERSION_ID="{distro.version}"\nPRETTY_NAME="{pretty}"\n'
    )


def _cmdline(machine: Machine) -> str:
    if machine.distro is EULER:
        image = f"BOOT_IMAGE=/vmlinuz-{machine.kernel} root=/dev/mapper/openeuler-root ro"
        return f"{image} rd.lvm.lv=openeuler/root crashkernel=1024M,high smmu.bypassdev=0x1000:0x17 video=efifb:off\n"
    return f"BOOT_IMAGE=/boot/vmlinuz-{machine.kernel} root=/dev/mapper/ubuntu--vg-root ro quiet splash\n"


def _cpuinfo(machine: Machine) -> str:
    """The first two processors: the model is what is read."""
    if machine.arch == "aarch64":
        block = (
            "BogoMIPS\t: 200.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid "
            "asimdrdm jscvt fcma dcpop asimddp asimdfhm\nCPU implementer\t: 0x48\nCPU architecture: 8\n"
            "CPU variant\t: 0x1\nCPU part\t: 0xd01\nCPU revision\t: 0\n\n"
        )
    else:
        family, model, name = (
            (6, 106, "Intel(R) Xeon(R) Processor") if machine.virtual else (25, 1, "AMD EPYC Processor")
        )
        vendor = "GenuineIntel" if machine.virtual else "AuthenticAMD"
        virtual = " hypervisor" if machine.virtual else ""
        block = (
            f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\nstepping\t: 1\n"
            f"flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sse sse2 ht lm avx avx2 bmi2 fma{virtual}\n\n"
        )
    return "".join(f"processor\t: {cpu}\n{block}" for cpu in range(2))


def _space(size: int, free: int) -> dict[str, int]:
    return {"size": size, "free": free, "inodes_free": free >> 14}


def nodes(host: Folder, free: dict[int, int] | None = None, cached: dict[int, int] | None = None) -> None:
    """The NUMA nodes: nine tenths free unless ``free`` (KiB) says else, the rest page cache and programs."""
    machine, base = host.machine, "/sys/devices/system/node"
    span = f"0-{machine.nodes - 1}\n" if machine.nodes > 1 else "0\n"
    for path in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        host.file(f"{base}/{path}", span)
    total_free = total_cached = 0
    for node in range(machine.nodes):
        node_free = (free or {}).get(node, machine.node_kib * 9 // 10 - node * 1312)
        node_cached = (cached or {}).get(node, (machine.node_kib - node_free) // 2)
        total_free, total_cached = total_free + node_free, total_cached + node_cached
        host.file(f"{base}/node{node}/meminfo", _node_meminfo(node, machine.node_kib, node_free, node_cached))
        host.file(f"{base}/node{node}/cpulist", machine.cpulist(node) + "\n")
        distances = (_distance(machine, node, other) for other in range(machine.nodes))
        host.file(f"{base}/node{node}/distance", " ".join(map(str, distances)) + "\n")
        package = f"/sys/devices/system/cpu/cpu{node * machine.cpus_of_node}/topology/physical_package_id"
        host.file(package, f"{node // machine.nodes_of_socket}\n")
    host.file("/proc/meminfo", _meminfo(machine.node_kib * machine.nodes, total_free, total_cached))


def _distance(machine: Machine, one: int, other: int) -> int:
    if one == other:
        return 10
    return 12 if one // machine.nodes_of_socket == other // machine.nodes_of_socket else 32


def _node_meminfo(node: int, total: int, free: int, cached: int) -> str:
    anonymous = (total - free - cached) // 2
    active, active_file = anonymous // 4, cached // 2
    values = {
        "MemTotal": total, "MemFree": free, "MemUsed": total - free, "SwapCached": 0, "Active": active + active_file,
        "Inactive": anonymous + cached - active - active_file, "Active(anon)": active,
        "Inactive(anon)": anonymous - active, "Active(file)": active_file, "Inactive(file)": cached - active_file,
        "Unevictable": 0, "Mlocked": 0, "Dirty": 164, "Writeback": 0, "FilePages": cached, "Mapped": cached // 8,
        "AnonPages": anonymous,
        "Shmem": 2640, "KernelStack": 9312, "PageTables": 2640, "NFS_Unstable": 0, "Bounce": 0, "WritebackTmp": 0,
        "KReclaimable": cached // 16, "Slab": cached // 10, "SReclaimable": cached // 16,
        "SUnreclaim": cached // 10 - cached // 16, "AnonHugePages": 0, "ShmemHugePages": 0, "ShmemPmdMapped": 0,
    }  # fmt: skip
    lines = [f"Node {node} {name + ':':<15} {kib:>8} kB" for name, kib in values.items()]
    lines += [
        f"Node {node} {name + ':':<15} {0:>5}" for name in ("HugePages_Total", "HugePages_Free", "HugePages_Surp")
    ]
    return "\n".join(lines) + "\n"


def _meminfo(total: int, free: int, cached: int) -> str:
    anonymous = (total - free - cached) // 2
    active = anonymous // 4 + cached // 2
    values = {
        "MemTotal": total, "MemFree": free, "MemAvailable": free + cached * 9 // 10, "Buffers": 52480, "Cached": cached,
        "SwapCached": 0, "Active": active, "Inactive": anonymous + cached - active, "SwapTotal": 0,
        "SwapFree": 0, "Dirty": 1312, "Writeback": 0, "AnonPages": anonymous, "Mapped": cached // 8, "Shmem": 21120,
        "KReclaimable": cached // 16,
        "Slab": cached // 10, "SReclaimable": cached // 16, "SUnreclaim": cached // 10 - cached // 16,
        "KernelStack": 74496, "PageTables": 21120, "CommitLimit": total // 2, "Committed_AS": anonymous * 2,
        "VmallocTotal": 135290159040, "VmallocUsed": 402496, "Percpu": 312320, "HardwareCorrupted": 0,
        "AnonHugePages": 0, "ShmemHugePages": 0, "CmaTotal": 0, "CmaFree": 0,
    }  # fmt: skip
    lines = [f"{name + ':':<15} {kib:>8} kB" for name, kib in values.items()]
    counts = ("HugePages_Total", "HugePages_Free", "HugePages_Rsvd", "HugePages_Surp")
    lines += [f"{name + ':':<15} {0:>8}" for name in counts]
    return "\n".join([*lines, f"{'Hugepagesize:':<15} {2048:>8} kB", f"{'Hugetlb:':<15} {0:>8} kB"]) + "\n"


ROOT_PORT = {"aarch64": ("19e5", "a120", "pcieport"), "x86_64": ("1022", "1483", "pcieport")}
"""HiSilicon root port and AMD Starship/Matisse GPP bridge."""

OTHERS = (
    Function("0000:05:00.0", 0, "1822", "hinic", kind="0x020000", speed="8.0 GT/s PCIe"),
    Function("0000:06:00.0", 0, "1711", "hibmc-drm", kind="0x030000", width=1, full_width=1, speed="5.0 GT/s PCIe"),
)
"""The network port and the display of the management processor: the vendor's other functions."""


def pci(host: Folder, cards: Sequence[Function], others: Sequence[Function] = OTHERS) -> None:
    """The cards, each below its own root port, and what else is on the bus."""
    bus_root = "/sys/bus/pci/devices"
    if host.machine.virtual:
        port = Function("0000:00:03.0", -1, "1000", "virtio-pci", "1af4", "0x020000", 0, 0)
        host.entry(
            bus_root, type="dir", mode="0755", uid=0, gid=0, names=[_function(host, port, "pci0000:00/0000:00:03.0")]
        )
        return
    vendor, device, name = ROOT_PORT[host.machine.arch]
    names = []
    ports: dict[int, int] = {}
    for card in [*cards, *others]:
        number = int(card.bus[5:7], 16)
        root = number & ~0x1F
        ports[root] = ports.get(root, -1) + 1
        port = f"0000:{root:02x}:{ports[root]:02x}.0"
        bridge = Function(port, card.node, device, name, vendor, "0x060400", card.width, card.full_width, card.speed)
        names.append(_function(host, bridge, f"pci0000:{root:02x}/{port}"))
        names.append(_function(host, card, f"pci0000:{root:02x}/{port}/{card.bus}"))
    host.entry(bus_root, type="dir", mode="0755", uid=0, gid=0, names=sorted(names))


def _function(host: Folder, function: Function, place: str) -> str:
    bus_link, home = f"/sys/bus/pci/devices/{function.bus}", f"/sys/devices/{place}"
    host.link(bus_link, f"../../../devices/{place}")
    host.file(f"{home}/vendor", f"0x{function.vendor}\n")
    host.file(f"{home}/device", f"0x{function.device}\n")
    host.file(f"{home}/class", f"{function.kind}\n")
    host.file(f"{home}/numa_node", f"{function.node}\n")
    if function.full_width:
        host.file(f"{home}/current_link_speed", f"{function.speed}\n")
        host.file(f"{home}/current_link_width", f"{function.width}\n")
        host.file(f"{home}/max_link_speed", f"{function.speed}\n")
        host.file(f"{home}/max_link_width", f"{function.full_width}\n")
    up = "../" * (home.count("/") - 1)
    host.link(f"{home}/driver", f"{up}bus/pci/drivers/{function.driver}")
    host.folder(f"/sys/bus/pci/drivers/{function.driver}")
    return function.bus


MOUNTS = """\
22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw
23 28 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
24 28 0:6 / /dev rw,nosuid shared:2 - devtmpfs devtmpfs rw,size=4096k,nr_inodes=65536,mode=755
25 23 0:7 / /sys/kernel/security rw,nosuid,nodev,noexec,relatime shared:8 - securityfs securityfs rw
26 24 0:23 / /dev/shm rw,nosuid,nodev shared:3 - tmpfs tmpfs rw
27 23 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/openeuler-root rw
29 27 0:30 / /sys/fs/cgroup/cpuset rw,nosuid,nodev,noexec,relatime shared:12 - cgroup cgroup rw,cpuset
30 27 0:31 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:13 - cgroup cgroup rw,memory
"""
UBUNTU_MOUNTS = """\
22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw
23 28 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
24 28 0:6 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,mode=755
26 24 0:23 / /dev/shm rw,nosuid,nodev shared:3 - tmpfs tmpfs rw
27 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/ubuntu--vg-root rw
"""
CGROUP_V1 = """\
13:cpuset:/
12:memory:/
11:devices:/
10:pids:/
9:freezer:/
8:cpu,cpuacct:/
1:name=systemd:/init.scope
"""
ALL_CAPABILITIES = "000001ffffffffff"
DOCKER_CAPABILITIES = "00000000a80425fb"


def host_root(host: Folder) -> None:
    """No container: the machine's own mounts, control groups and shared memory."""
    machine = host.machine
    memory = machine.node_kib * machine.nodes << 10
    host.file("/proc/1/cgroup", CGROUP_V1 if machine.distro is EULER else "0::/init.scope\n")
    first = machine.distro is EULER
    host.file("/proc/self/cgroup", USER_SLICE_V1 if first else "0::/user.slice\n")
    control_groups(host, "/user.slice", first)
    services(host, first)
    host.file("/proc/1/sched", "systemd (1, #threads: 1)\n")
    host.file("/proc/1/comm", "systemd\n")
    host.file("/proc/self/mountinfo", MOUNTS if machine.distro is EULER else UBUNTU_MOUNTS)
    host.entry("/dev/shm", type="dir", mode="1777", uid=0, gid=0, statvfs=_space(memory // 2, memory // 2 - (21 << 20)))
    host.entry("/run", type="dir", mode="0755", uid=0, gid=0)


USER_SLICE_V1 = "12:memory:/user.slice\n10:pids:/user.slice\n8:cpu,cpuacct:/user.slice\n1:name=systemd:/user.slice\n"


def control_groups(host: Folder, group: str, first: bool) -> None:
    """Groups without limits, of version 1 (``first``) or 2; the group "" is the root that a container sees."""
    base = "/sys/fs/cgroup"
    if not first:
        host.file(f"{base}/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n")
        for name, value in (("memory.max", "max"), ("pids.max", "max"), ("cpu.max", "max 100000")):
            host.file(f"{base}{group}/{name}", f"{value}\n")
        return
    for folder in dict.fromkeys(("", group)):
        host.file(f"{base}/memory{folder}/memory.limit_in_bytes", "9223372036854771712\n")
        host.file(f"{base}/cpu{folder}/cpu.cfs_quota_us", "-1\n")
    host.file(f"{base}/pids{group}/pids.max", "max\n")


def services(host: Folder, first: bool) -> None:
    """The services of systemd that run, each a control group."""
    names = ["dbus.service", "sshd.service", "chronyd.service" if first else "systemd-timesyncd.service"]
    path = f"/sys/fs/cgroup{'/systemd' if first else ''}/system.slice"
    for name in names:
        host.entry(f"{path}/{name}", type="dir", mode="0755", uid=0, gid=0)
    if not first:
        host.file("/run/systemd/timesync/synchronized", "")


def container(host: Folder, identifier: str, mounts: str) -> None:
    """A Docker container on a cgroup v1 host, its /dev/shm made larger as model servers need it."""
    scope = f"/docker/{identifier}"
    text = CGROUP_V1.replace("/init.scope", "/").replace(":/\n", f":{scope}\n")
    host.file("/proc/1/cgroup", text)
    host.file("/proc/self/cgroup", text)
    control_groups(host, "", first=True)
    host.file("/proc/1/sched", "bash (1, #threads: 1)\n")
    host.file("/proc/1/comm", "bash\n")
    host.file("/.dockerenv", "")
    host.file("/proc/self/mountinfo", mounts)
    host.entry("/dev/shm", type="dir", mode="1777", uid=0, gid=0, statvfs=_space(64 << 30, 64 << 30))
    host.entry("/run", type="dir", mode="0755", uid=0, gid=0)


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             6179328              6179328              processes 
Max open files            1048576              1048576              files     
Max locked memory         unlimited            unlimited            bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       6179328              6179328              signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
"""  # noqa: W291


def login(host: Folder, uid: int, gids: tuple[int, ...], capabilities: str = "", seccomp: int = 0) -> None:
    """Who asks, and what the kernel grants that process."""
    host.uid, host.gids = uid, gids
    granted = capabilities or (ALL_CAPABILITIES if uid == 0 else "0" * 16)
    bounding = capabilities or ALL_CAPABILITIES
    groups = " ".join(map(str, gids))
    last = host.machine.cpus - 1
    nodes_list = f"0-{host.machine.nodes - 1}" if host.machine.nodes > 1 else "0"
    host.file("/proc/self/status", (
        f"Name:\tpython3\nUmask:\t0022\nState:\tR (running)\nPid:\t48213\nPPid:\t48109\n"
        f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{gids[0]}\t{gids[0]}\t{gids[0]}\t{gids[0]}\nGroups:\t{groups} \n"
        f"Threads:\t1\nCapInh:\t{'0' * 16}\nCapPrm:\t{granted}\nCapEff:\t{granted}\nCapBnd:\t{bounding}\n"
        f"CapAmb:\t{'0' * 16}\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\n"
        f"Cpus_allowed_list:\t0-{last}\nMems_allowed_list:\t{nodes_list}\n"
    ))  # fmt: skip
    host.file("/proc/self/limits", LIMITS)
    accounts = ["root:x:0:0:root:/root:/bin/bash"]
    groups_file = ["root:x:0:"]
    if "/usr/local/Ascend/driver" in host.entries:
        accounts.append("HwHiAiUser:x:1000:1000::/home/HwHiAiUser:/bin/bash")
        groups_file.append("HwHiAiUser:x:1000:" + ("worker" if uid and 1000 in gids else ""))
    if uid:
        accounts.append(f"worker:x:{uid}:{gids[0]}::/home/worker:/bin/bash")
        groups_file.append(f"worker:x:{gids[0]}:")
    host.file("/etc/passwd", "\n".join(accounts) + "\n")
    host.file("/etc/group", "\n".join(groups_file) + "\n")
    distro = host.machine.seen
    short = ".".join(distro.python.split(".")[:2])
    host.link(f"{distro.prefix}/bin/python3", f"python{short}")
    host.entry(f"{distro.prefix}/bin/python{short}", type="file", mode="0755", uid=0, gid=0)
    for site in distro.site:
        host.folder(site)
    host.python = {"executable": f"{distro.prefix}/bin/python3", "version": distro.python, "site": list(distro.site)}
    host.env.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
