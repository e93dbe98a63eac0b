"""What driver, firmware, CANN and npu-smi leave on a machine, as public captures and the vendor's sources show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis import analysis_of_cann
from linux import Folder, libraries, loader

ROOT = "/usr/local/Ascend"
OWNER = 1000
"""uid and gid of HwHiAiUser."""


@dataclass(frozen=True)
class Chip:
    """A row of ``npu-smi info``; ``number``: its chip id in the card; ``device``: Phy-ID or logic id where shown."""

    npu: int
    bus: str
    node: int
    name: str
    watts: float | None = None
    celsius: int = 45
    used: int = 3400
    total: int = 65536
    health: str = "OK"
    number: int = 0
    device: int = 0
    busy_percent: int = 0


@dataclass(frozen=True)
class Driver:
    """One HDK release: driver, firmware, and what their version.info say of each other; empty: not public."""

    version: str
    firmware: str
    inner: str
    fits: tuple[str, ...] = ()
    fits_firmware: str = ""
    fits_driver: str = ""


def _used_of(used: int, total: int) -> str:
    return f"{used:<5}/ {total}"


def single_table(version: str, chips: Sequence[Chip]) -> str:
    """910B of 23.0.rc2 to 25.5: one chip a card, width 96."""
    rows = []
    for c in chips:
        rows.append(f"| {c.npu:<6}{c.name:<20}| {c.health:<14}| {c.watts!s:<12}{c.celsius:<18}{_used_of(0, 0):<21}|")
        memory = f"{c.busy_percent:<12}{_used_of(0, 0):<18}{_used_of(c.used, c.total):<21}"
        rows.append(f"| {c.number:<26}| {c.bus:<14}| {memory}|")
        rows.append(NARROW_LINE)
    return _narrow(version, "Chip                     ", rows, [c.npu for c in chips])


def module_table(version: str, chips: Sequence[Chip]) -> str:
    """A3 of 24.1 to 25.5: two dies a module, power only on the first, a Phy-ID for each."""
    rows = []
    for c in chips:
        watts = "-" if c.number else str(c.watts)
        rows.append(f"| {c.npu:<6}{c.name:<20}| {c.health:<14}| {watts:<12}{c.celsius:<18}{_used_of(0, 0):<21}|")
        memory = f"{c.busy_percent:<12}{_used_of(0, 0):<18}{_used_of(c.used, c.total):<21}"
        rows.append(f"| {c.number:<6}{c.device:<20}| {c.bus:<14}| {memory}|")
        rows.append(NARROW_LINE if c.number else "+" + "-" * 96 + "+")
    return _narrow(version, "Chip  Phy-ID             ", rows, sorted({c.npu for c in chips}))


NARROW_LINE = "+===========================+===============+====================================================+"


def _narrow(version: str, second: str, rows: list[str], npus: Sequence[int]) -> str:
    part = NARROW_LINE.replace("=", "-")
    head = [
        "+" + "-" * 96 + "+",
        "|" + f" npu-smi {version:<24} Version: {version}".ljust(96) + "|",
        part,
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|",
        f"| {second} | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |",
        NARROW_LINE,
    ]
    processes = [
        part,
        "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |",
    ]
    processes.append(NARROW_LINE)
    for npu in npus:
        processes += ["|" + f" No running processes found in NPU {npu}".ljust(96) + "|", NARROW_LINE]
    return "\n".join([*head, *rows, *processes]) + "\n"


def duo_table(version: str, chips: Sequence[Chip]) -> str:
    """310P: two chips of one card share a bus address, no power reading, no HBM, width 104."""
    part = "+" + "-" * 31 + "+" + "-" * 17 + "+" + "-" * 54 + "+"
    line = part.replace("-", "=")
    out = [
        "+" + "-" * 104 + "+",
        "|" + f" npu-smi {version:<40} Version: {version}".ljust(104) + "|",
        part,
        "| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |",
        "| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |",
        line,
    ]
    for c in chips:
        out.append(f"| {c.npu:<8}{c.name:<22}| {c.health:<16}| {'NA':<13}{c.celsius:<18}{'0     / 0':<22}|")
        out.append(f"| {c.number:<8}{c.device:<22}| {c.bus:<16}| {c.busy_percent:<13}{_used_of(c.used, c.total):<40}|")
        out.append(line if c.number else part)
    out += [
        part,
        "| NPU     Chip                  | Process id      | Process name             | Process memory(MB)        |",
    ]
    out.append(line)
    for npu in sorted({c.npu for c in chips}):
        out += ["|" + f" No running processes found in NPU {npu}".ljust(104) + "|", line]
    return "\n".join(out) + "\n"


def unified_table(version: str, chips: Sequence[Chip]) -> str:
    """950 of 25.7: the NPU id in a cell of its own, no chip id, width 97."""
    part = "+--------+------------------+---------------+" + "-" * 53 + "+"
    line = part.replace("-", "=")
    out = [
        "+" + "-" * 97 + "+",
        "|" + f" npu-smi {version:<40} Version: {version}".ljust(97) + "|",
        part,
        "| NPU ID | Name             | Health        | Power(W)    Temp(C)           Hugepages-Usage(page) |",
        "|        |                  | Bus-Id        | NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB)         |",
        line,
    ]
    for c in chips:
        out.append(f"| {c.npu:<7}| {c.name:<17}| {c.health:<14}| {c.watts!s:<12}{c.celsius:<18}{'0     / 0':<22}|")
        memory = f"{c.busy_percent:<12}{'0    / 0':<18}{f'{c.used:<6}/ {c.total}':<22}"
        out.append(f"|        |                  | {c.bus:<14}| {memory}|")
        out.append(line)
    processes = "+---------------------------+---------------+" + "-" * 53 + "+"
    out += [
        processes,
        "| NPU ID                    | Process id    | Process name             | Process memory(MB)       |",
        processes.replace("-", "="),
    ]
    for c in chips:
        out.append("|" + f" No running processes found in NPU {c.npu}".ljust(97) + "|")
        out.append(processes.replace("-", "="))
    return "\n".join(out) + "\n"


LEGEND = {
    "X": "Self",
    "SYS": "Path traversing PCIe and NUMA nodes. Nodes are connected through SMP, such as QPI, UPI.",
    "PHB": "Path traversing PCIe and the PCIe host bridge of a CPU.",
    "PIX": "Path traversing a single PCIe switch",
    "PXB": "Path traversing multipul PCIe switches",
    "HCCS": "Connection traversing HCCS.",
}
LEGEND_950 = {
    **{word: LEGEND[word] for word in ("X", "SYS", "PHB")},
    "PIX": "Path traversing a single PCIe switch.",
    "PXB": "Path traversing multiple PCIe switches.",
    "SIO": "Path traversing the SIO bus.",
    "UB": "Connection traversing UB.",
    "NA": "Unknown relationship.",
}
"""As the tools print them: the older one has its own spelling."""


def topology(
    host: Folder, chips: Sequence[Chip], link: Callable[[Chip, Chip], str], legend: dict[str, str] = LEGEND
) -> None:
    """``npu-smi info -t topo``: how the cards reach each other, and the CPUs that are near to each."""
    names = [f"NPU{c.npu}" for c in chips]
    lines = ["".join(f"{word:<11}" for word in ("", *names)) + "CPU Affinity"]
    for name, one in zip(names, chips):
        cells = ["X" if one is other else link(one, other) for other in chips]
        near = host.machine.cpulist(one.node)
        lines.append("".join(f"{word:<11}" for word in (name, *cells)) + near)
    lines += ["", "Legend:", *(f"  {word:<4} = {text}" for word, text in legend.items())]
    host.command(("npu-smi", "info", "-t", "topo"), "\n".join(lines) + "\n")


def npu_smi(host: Folder, table: str) -> None:
    host.entry("/usr/local/sbin/npu-smi", type="file", mode="0755", uid=0, gid=0)
    host.command(("npu-smi", "info"), table)


def device_nodes(host: Folder, numbers: Iterable[int], mode: str = "0660") -> None:
    """The character devices of the driver and the few of any Linux."""
    ours = [*(f"davinci{n}" for n in numbers), "davinci_manager", "devmm_svm", "hisi_hdc"]
    host.entry("/dev", type="dir", mode="0755", uid=0, gid=0, names=sorted([*ours, "null", "shm", "zero"]))
    for name in ("null", "zero"):
        host.entry(f"/dev/{name}", type="char", mode="0666", uid=0, gid=0)
    for name in ours:
        host.entry(f"/dev/{name}", type="char", mode=mode, uid=OWNER, gid=OWNER)


MODULES = (
    "drv_vascend", "dbl_runenv_config", "drv_devmm_host", "drv_devmm_host_agent", "ascend_event_sched_host",
    "drv_devmng_host", "drv_pcie_hdc_host", "ascend_trs_sec_eh_agent", "ascend_trs_sub_stars", "ascend_queue",
    "drv_davinci_intf_host", "ts_agent", "ascend_trs_pm_adapt", "dbl_dev_identity", "dbl_algorithm", "drv_soft_fault",
    "ascend_soc_platform", "drv_dvpp_cmdlist", "drv_pcie_host", "drv_pcie_vnic_host", "ascend_trs_shrid",
    "drv_dp_proc_mng_host", "ascend_xsmem", "drv_virtmng_host",
)  # fmt: skip
"""Kernel modules that a public lspci -v of a 910B lists."""


def modules(host: Folder) -> None:
    size = 4096 * 23
    host.file("/proc/modules", "".join(f"{name} {size} 0 - Live 0x0000000000000000 (O)\n" for name in MODULES))
    listed = f"/lib/modules/{host.machine.kernel}/modules.dep"
    if listed in host.files:  # a container has none
        host.files[listed] = f"{host.files[listed]}{''.join(f'updates/{name}.ko:' + chr(10) for name in MODULES)}"


DRIVER_SAID = (
    (9.301571, "drv_pcie_host: loading out-of-tree module taints kernel."),
    (9.302001, "drv_pcie_host: module verification failed: signature and/or required key missing - tainting kernel"),
    (
        97.120034,
        "[ascend] [drv_pcie] [devdrv_init_dev_num 2248] <systemd-udevd:853:853> Findout device. "
        "(index=0; device=d802; dev_num=1)",
    ),
    (
        2081.844061,
        "[ascend] [devmm] [devmm_svm_release_private_proc 2270] <kworker/1:1:38608,38608> Device process exited. "
        "(hostpid=-1; times=0)",
    ),
)
"""Lines of a healthy driver, some of them frightening."""


DRIVER_PATHS = [f"{ROOT}/driver/lib64", f"{ROOT}/driver/lib64/common", f"{ROOT}/driver/lib64/driver"]
DRIVER_LIBRARIES = {
    f"{ROOT}/driver/lib64": ("libdcmi.so",),
    f"{ROOT}/driver/lib64/common": ("libc_sec.so", "libmmpa.so"),
    f"{ROOT}/driver/lib64/driver": ("libascend_hal.so", "libdrvdsmi_host.so", "libdcmi.so"),
}


def driver(host: Folder, hdk: Driver, in_container: bool = False) -> None:
    """The driver's folder: version.info and libraries; its installer also tells the loader of a host where they are."""
    host.entry(f"{ROOT}/driver", type="dir", mode="0755", uid=0, gid=0)
    host.file(f"{ROOT}/driver/version.info", _driver_version(hdk))
    for folder, names in DRIVER_LIBRARIES.items():
        host.folder(folder, *names)
    if not in_container:
        cached = [f"{folder}/{name}" for folder, names in DRIVER_LIBRARIES.items() for name in names]
        loader(host, [*cached, f"{libraries(host)}/libc.so.6"], {"ascend_driver_so.conf": DRIVER_PATHS})


def _driver_version(hdk: Driver) -> str:
    if not hdk.inner:
        return f"package_version={hdk.version}\nascendhal_version=7.35.23\n"
    lines = [f"Version={hdk.version}", "ascendhal_version=7.35.23", "aicpu_version=1.0", "tdt_version=1.0"]
    lines += ["log_version=1.0", "prof_version=2.0", "dvppkernels_version=1.1", "tsfw_version=1.0"]
    lines.append(f"Innerversion={hdk.inner}")
    if hdk.fits:
        lines.append("compatible_version=" + ",".join(f"[V100R001C{c}]" for c in hdk.fits))
    if hdk.fits_firmware:
        lines.append(f"compatible_version_fw={hdk.fits_firmware}")
    return "\n".join([*lines, f"package_version={hdk.version}"]) + "\n"


def firmware(host: Folder, hdk: Driver) -> None:
    """Only a host has it: images and containers carry no firmware folder."""
    lines = [f"Version={hdk.firmware}"] if hdk.firmware else []
    lines += ["firmware_version=1.0", f"package_version={hdk.version}"]
    if hdk.fits_driver:
        lines.append(f"compatible_version_drv={hdk.fits_driver}")
    host.entry(f"{ROOT}/firmware", type="dir", mode="0755", uid=0, gid=0)
    host.file(f"{ROOT}/firmware/version.info", "\n".join(lines) + "\n")


def install_info(host: Folder) -> None:
    lines = ["UserName=HwHiAiUser", "UserGroup=HwHiAiUser"]
    lines += [f"Firmware_Install_{key}" for key in ("Type=full", f"Path_Param={ROOT}")]
    lines += [f"Driver_Install_{key}" for key in ("Type=full", f"Path_Param={ROOT}", "For_All=no", "Mode=normal")]
    host.file("/etc/ascend_install.info", "\n".join([*lines, "Driver_Install_Status=complete"]) + "\n")


RUN_LIBRARIES = (
    "libascendcl.so", "libruntime.so", "libhccl.so", "libge_runner.so", "libgraph.so", "libacl_op_compiler.so",
    "libacl_tdt_channel.so", "libprofapi.so", "libascendalog.so", "libnnopbase.so", "libopapi.so", "libregister.so",
)  # fmt: skip
STUB_LIBRARIES = ("libascendcl.so", "libascend_hal.so", "libruntime.so", "libhccl.so", "libc_sec.so")


@dataclass(frozen=True)
class Toolkit:
    """A CANN release; ``inner`` and ``fits`` as its ascend_toolkit_install.info has them."""

    version: str
    inner: str
    fits: tuple[str, ...] = ()

    @property
    def home(self) -> str:
        return f"{ROOT}/{self.folder}"

    @property
    def folder(self) -> str:
        old = int(self.version[0]) < 8 or self.version.startswith(("8.0", "8.1", "8.2", "8.3"))
        return f"ascend-toolkit/{self.version}" if old else f"cann-{self.version}"


def cann(host: Folder, toolkit: Toolkit, kernels: Sequence[str]) -> None:
    """A toolkit as its installer lays it out, and the environment that its set_env.sh and the driver's give."""
    arch, home = host.machine.arch, toolkit.home
    host.entry(home, type="dir", mode="0755", uid=0, gid=0)
    if toolkit.folder.startswith("cann"):
        host.link(f"{ROOT}/cann", toolkit.folder)
        host.link(f"{ROOT}/ascend-toolkit/latest", f"../{toolkit.folder}")
    else:
        host.link(f"{ROOT}/ascend-toolkit/latest", toolkit.version)
    host.file(f"{home}/{arch}-linux/ascend_toolkit_install.info", _toolkit_info(toolkit, arch))
    host.folder(f"{home}/lib64", *RUN_LIBRARIES)
    host.folder(f"{home}/devlib", *STUB_LIBRARIES)
    tables = f"{home}/opp/built-in/op_impl/ai_core/tbe"
    searched = [f"{home}/tools/aml/lib64", f"{home}/tools/aml/lib64/plugin", f"{home}/lib64"]
    searched += [f"{home}/lib64/plugin/opskernel", f"{home}/lib64/plugin/nnengine"]
    searched += [f"{tables}/op_tiling/lib/linux/{arch}"]
    programs = [f"{home}/bin", f"{home}/compiler/ccec_compiler/bin", f"{home}/tools/ccec_compiler/bin"]
    modules_of = [f"{home}/python/site-packages", tables]
    for path in [
        *searched,
        *programs,
        *modules_of,
        f"{home}/toolkit",
        f"{home}/runtime",
        *(f"{tables}/kernel/{soc}" for soc in kernels),
    ]:
        host.folder(path)
    host.file(f"{home}/set_env.sh", _set_env(toolkit, arch))
    analysis_of_cann(host, f"{home}/lib64")
    searched += DRIVER_PATHS
    if toolkit.version >= "9":
        searched.append(f"{home}/devlib")
    host.env.update({
        "ASCEND_TOOLKIT_HOME": home, "ASCEND_HOME_PATH": home, "ASCEND_OPP_PATH": f"{home}/opp",
        "ASCEND_AICPU_PATH": home, "TOOLCHAIN_HOME": f"{home}/toolkit",
        "LD_LIBRARY_PATH": ":".join(searched), "PYTHONPATH": ":".join(modules_of),
        "PATH": ":".join([*programs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"]),
    })  # fmt: skip


def nnal(host: Folder, toolkit: Toolkit) -> None:
    """NNAL of the same CANN with ATB for both C++ ABIs, sourced after CANN where torch has the newer one."""
    root = f"{ROOT}/nnal/atb/{toolkit.version}"
    host.entry(root, type="dir", mode="0755", uid=0, gid=0)
    host.link(f"{ROOT}/nnal/atb/latest", toolkit.version)
    lines = [f"    Ascend-cann-atb : {toolkit.version}", f"    Ascend-cann-atb Version : {toolkit.version}.B060"]
    host.file(f"{root}/version.info", "\n".join([*lines, f"    Platform : {host.machine.arch}"]) + "\n")
    for abi in (0, 1):
        host.folder(f"{root}/atb/cxx_abi_{abi}/lib", "libatb.so", "libmki.so")
    chosen = f"{ROOT}/nnal/atb/latest/atb/cxx_abi_1"
    path = host.env["LD_LIBRARY_PATH"]
    host.env.update({"ATB_HOME_PATH": chosen, "LD_LIBRARY_PATH": f"{chosen}/lib:{path}"})


def _toolkit_info(toolkit: Toolkit, arch: str) -> str:
    path = toolkit.home if toolkit.folder.startswith("cann") else f"{toolkit.home}/{arch}-linux"
    lines = ["package_name=Ascend-cann-toolkit", f"version={toolkit.version}", f"innerversion={toolkit.inner}"]
    if toolkit.fits:
        lines.append("compatible_version=" + ",".join(f"[V100R001C{c}]" for c in toolkit.fits))
    return "\n".join([*lines, f"arch={arch}", "os=linux", f"path={path}"]) + "\n"


def _set_env(toolkit: Toolkit, arch: str) -> str:
    home, tables = "${ASCEND_TOOLKIT_HOME}", "${ASCEND_TOOLKIT_HOME}/opp/built-in/op_impl/ai_core/tbe"
    exports = {
        "LD_LIBRARY_PATH": f"{home}/lib64:{home}/lib64/plugin/opskernel:{home}/lib64/plugin/nnengine"
        f":{tables}/op_tiling/lib/linux/{arch}:$LD_LIBRARY_PATH",
        "PYTHONPATH": f"{home}/python/site-packages:{tables}:$PYTHONPATH",
        "PATH": f"{home}/bin:{home}/compiler/ccec_compiler/bin:{home}/tools/ccec_compiler/bin:$PATH",
        "ASCEND_AICPU_PATH": home,
        "ASCEND_OPP_PATH": f"{home}/opp",
        "TOOLCHAIN_HOME": f"{home}/toolkit",
        "ASCEND_HOME_PATH": home,
    }
    lines = [f"export ASCEND_TOOLKIT_HOME={toolkit.home}", *(f"export {k}={v}" for k, v in exports.items())]
    lines.append(f"export LD_LIBRARY_PATH={home}/tools/aml/lib64:{home}/tools/aml/lib64/plugin:$LD_LIBRARY_PATH")
    if toolkit.version >= "9":
        lines.append(f"export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{home}/devlib")
    return "\n".join(lines) + "\n"


def docker(host: Folder) -> None:
    """Docker with the Ascend runtime as its default."""
    runtime = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"
    host.entry("/usr/bin/docker", type="file", mode="0755", uid=0, gid=0)
    host.entry("/run/docker.sock", type="socket", mode="0660", uid=0, gid=0)
    host.link("/var/run", "../run")
    host.entry(runtime, type="file", mode="0755", uid=0, gid=0)
    host.file("/etc/docker/daemon.json", (
        '{\n    "default-runtime": "ascend",\n    "runtimes": {\n        "ascend": {\n'
        f'            "path": "{runtime}",\n            "runtimeArgs": []\n        }}\n    }}\n}}\n'
    ))  # fmt: skip


def network_conf(host: Folder, count: int) -> None:
    """/etc/hccn.conf: the address of each NPU's own network port."""
    lines = []
    for npu in range(count):
        lines += [f"address_{npu}=10.1.{137 + npu}.205", f"netmask_{npu}=255.255.0.0", f"netdetect_{npu}=10.1.0.1"]
        lines += [f"gateway_{npu}=10.1.0.1", f"send_arp_status_{npu}=1"]
    host.file("/etc/hccn.conf", "\n".join(lines) + "\n")


def details(host: Folder, chips: Sequence[Chip], hdk: Driver) -> None:
    """What npu-smi tells in depth of each card with one chip, idle, as 910 to 910B print it.

    What ``-t proc-mem`` prints without a process is not public, and is left out.
    """

    def said(pairs: Sequence[tuple[str, object]], width: int = 30) -> str:
        return "".join(f"\t{name:<{width}} : {value}\n" if name else "\n" for name, value in pairs) + "\n"

    blank = ("", "")
    cards = [pair for c in chips for pair in (blank, ("NPU ID", c.npu), ("Product Name", "NA"), ("Chip Count", 1))]
    host.command(("npu-smi", "info", "-l"), said([("Total Count", len(chips)), *cards]))
    columns = ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name")
    table = [columns]
    for place, c in enumerate(chips):
        table += [(str(c.npu), "0", str(place), f"Ascend {c.name}"), (str(c.npu), "1", "-", "Mcu")]
    host.command(("npu-smi", "info", "-m"), "".join("\t" + "".join(f"{w:<31}" for w in row) + "\n" for row in table))
    for c in chips:
        answers = {"board": _board(c, hdk), "common": _common(c), "ecc": _ecc(c), "usages": _usages(c)}
        for what, pairs in answers.items():
            argv = ("npu-smi", "info", "-t", what, "-i", str(c.npu))
            host.command(argv, said(pairs, 40 if what == "ecc" else 30))


def _board(c: Chip, hdk: Driver) -> list[tuple[str, object]]:
    return [
        ("NPU ID", c.npu), ("Software Version", hdk.version), ("Firmware Version", hdk.firmware),
        ("Compatibility", "OK"), ("Board ID", "0x02"), ("PCB ID", "A"), ("BOM ID", 1), ("PCIe Bus Info", c.bus),
        ("Slot ID", c.npu),
        ("Class ID", "NA"), ("PCI Vendor ID", "0x19e5"), ("PCI Device ID", "0xD802"), ("Chip Count", 1),
    ]  # fmt: skip


def _common(c: Chip) -> list[tuple[str, object]]:
    return [
        ("NPU ID", c.npu), ("Chip Count", 1), ("", ""), ("Chip ID", c.number), ("Memory Usage Rate(%)", 0),
        ("HBM Usage Rate(%)", c.used * 100 // c.total), ("Aicore Usage Rate(%)", c.busy_percent),
        ("Aicore Freq(MHZ)", 1800), ("Aicore curFreq(MHZ)", 800), ("Aicore Count", 24), ("Temperature(C)", c.celsius),
        ("NPU Real-time Power(W)", c.watts), ("", ""), ("Chip Name", "mcu"), ("Temperature(C)", c.celsius - 8),
    ]  # fmt: skip


def _ecc(c: Chip) -> list[tuple[str, object]]:
    kinds = ("Error Count", "Aggregate Total Err Cnt", "Isolated Pages Count")
    counters = [f"{memory} {bits} Bit {kind}" for memory in ("DDR", "HBM") for kind in kinds for bits in BITS]
    head = [("NPU ID", c.npu), ("Chip Count", 1), ("", "")]
    return [*head, *((name, 0) for name in counters), ("Chip ID", c.number)]


BITS = ("Single", "Double")


def _usages(c: Chip) -> list[tuple[str, object]]:
    return [
        ("NPU ID", c.npu), ("Chip Count", 1), ("", ""), ("DDR Capacity(MB)", 0), ("DDR Usage Rate(%)", 0),
        ("DDR Hugepages Total(page)", 0), ("DDR Hugepages Usage Rate(%)", 0), ("HBM Capacity(MB)", c.total),
        ("HBM Usage Rate(%)", c.used * 100 // c.total), ("Aicore Usage Rate(%)", c.busy_percent),
        ("Aivector Usage Rate(%)", 0), ("Aicpu Usage Rate(%)", 0), ("Ctrlcpu Usage Rate(%)", 0),
        ("DDR Bandwidth Usage Rate(%)", 0), ("HBM Bandwidth Usage Rate(%)", 0), ("Chip ID", c.number),
    ]  # fmt: skip


def health(host: Folder, chip: Chip, code: str, information: str) -> None:
    """``npu-smi info -t health`` of one chip."""
    answers = {"Health Status": chip.health, "Error Code": code, "Error Information": information}
    text = "".join(f"\t{name:<30} : {value}\n" for name, value in answers.items())
    host.command(("npu-smi", "info", "-t", "health", "-i", str(chip.npu), "-c", str(chip.number)), text)
