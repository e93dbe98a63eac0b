"""The command on simulated machines: bubblewrap gives it another /etc, /sys, /dev, /usr/local and other tools.

Kernel release and processor cannot be simulated; all else that a report says must be of the simulated machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command import CHECKOUT
from hosts import host
from trees import planted

from ascend_doctor.engine.checks import load_checks
from ascend_doctor.engine.run import judged
from ascend_doctor.engine.situation import Situation
from ascend_doctor.facts.tree import facts_as_json
from ascend_doctor.host.snapshot import SnapshotHost, content
from ascend_doctor.paths import data_folder

BWRAP = shutil.which("bwrap")
ROOT = os.getuid() == 0
NOBODY = 65534
USERS = ("root", "nobody") if ROOT else ("ourselves",)
NAME = "simulated-7"
FEW_PROCESSES = 10

OWN_FOLDERS = ("etc", "proc", "sys", "run", "var")
"""What a simulated machine has of its own; /usr/local is made of tools and Ascend, /dev of /dev/null."""

AREAS = ("cann", "driver", "hccn", "machine", "numa", "npu", "os_release", "pci", "thp", "topo")
"""Areas whose files and commands are all simulated."""


class Machine:
    """A test host as a machine that processes can run on."""

    def __init__(self, snapshot: SnapshotHost, folder: Path) -> None:
        self.snapshot, self.tree, self.log = snapshot, planted(snapshot, folder / "tree"), folder / "log"
        self.log.mkdir(mode=0o777)
        self.log.chmod(0o777)
        folder.chmod(0o755)
        with open(self.tree / "etc/passwd", "a", encoding="utf-8") as users:
            users.write(f"nobody:x:{NOBODY}:{NOBODY}::/nonexistent:/bin/false\n")
        for tool in {argv[0] for argv, command in snapshot.document.commands.items() if not command.missing}:
            self._make(tool)

    def _make(self, tool: str) -> None:
        """Prints what the snapshot has, and leaves a line for each start."""
        lines = ["#!/bin/sh", f'echo "{tool} $*" >> /log/starts', 'case "$*" in']
        for number, (argv, command) in enumerate(self.snapshot.document.commands.items()):
            if argv[0] == tool and not command.missing:
                text = content(self.snapshot.members, command.stdout) if command.stdout else b""
                output = self.tree / f"usr/local/share/{tool}-{number}"
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_bytes(text)
                lines.append(
                    f"{shlex.quote(' '.join(argv[1:]))}) cat /usr/local/share/{output.name}; exit {command.rc};;"
                )
        path = self.tree / "usr/local/bin" / tool
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, "esac", "exit 1", ""]))
        path.chmod(0o755)
        (self.tree / "usr/local/sbin" / tool).unlink(missing_ok=True)

    def starts(self) -> list[str]:
        path = self.log / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted(line.strip() for line in lines)

    def environment(self) -> dict[str, str]:
        known = {name: value for name, value in self.snapshot.document.env.items() if isinstance(value, str)}
        return {**known, "PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/bin"}

    def sandbox(self, user: str) -> list[str]:
        words = [str(BWRAP), "--unshare-uts", "--unshare-net", "--hostname", NAME, "--die-with-parent"]
        words += ["--ro-bind", "/usr", "/usr", "--tmpfs", "/usr/local", "--tmpfs", "/tmp", "--dev", "/dev"]
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
            elif os.path.isdir(f"/{name}"):
                words += ["--ro-bind", f"/{name}", f"/{name}"]
        words += self._own_places() + self._python() + ["--bind", str(self.log), "/log", "--chdir", "/tmp"]
        words += ["--clearenv"]
        for name, value in self.environment().items():
            words += ["--setenv", name, value]
        if user == "nobody":
            words += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return words

    def _own_places(self) -> list[str]:
        places = [(self.tree / name, f"/{name}") for name in OWN_FOLDERS]
        places += [(path, f"/usr/local/{path.name}") for path in sorted((self.tree / "usr/local").iterdir())]
        words = [word for path, inside in places if path.exists() for word in ("--ro-bind", str(path), inside)]
        for path in sorted((self.tree / "dev").iterdir()):
            if path.name.startswith(("davinci", "devmm", "hisi")):
                words += ["--dev-bind", "/dev/null", f"/dev/{path.name}"]
        return words

    def _python(self) -> list[str]:
        """Our interpreter and package at their places, where any user may reach them."""
        folders = {CHECKOUT, Path(sys.prefix)}
        if sys.base_prefix != "/usr":
            folders |= {Path(sys.base_prefix) / name for name in ("bin", "lib")}
        kept = sorted(folder for folder in folders if folder.is_dir() and str(folder) != "/usr")
        words = []
        for above in sorted({above for folder in kept for above in folder.parents} - {Path("/"), Path("/usr")}):
            if not any(above.is_relative_to(folder) for folder in kept):
                words += ["--perms", "0755", "--dir", str(above)]
        return words + [word for folder in kept for word in ("--ro-bind", str(folder), str(folder))]

    def run(self, user: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.sandbox(user), *doctor(), *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr == ""
        return done


def doctor() -> Sequence[str]:
    """The console script of this environment, where the package is installed in it."""
    script = Path(sys.executable).parent / "ascend-doctor"
    if script.exists():
        return [str(script)]
    code = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from ascend_doctor.__main__ import main; sys.exit(main())"
    )
    return [sys.executable, "-c", code]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Machine]:
    if not BWRAP:
        pytest.skip("needs bubblewrap")
    tried = subprocess.run([BWRAP, "--ro-bind", "/", "/", "--unshare-net", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"bubblewrap may make no sandbox here: {tried.stderr.decode().strip()}")

    class Made(dict[str, Machine]):
        def __missing__(self, name: str) -> Machine:
            made = self[name] = Machine(host(name), tmp_path_factory.mktemp(name))
            return made

    return Made()


@pytest.mark.parametrize("name", ["a2-healthy", "x86-healthy", "950-healthy", "310p-healthy"])
@pytest.mark.parametrize("user", USERS)
def test_the_facts_are_those_of_the_simulated_machine(machines: Mapping[str, Machine], name: str, user: str) -> None:
    machine = machines[name]
    found = json.loads(machine.run(user, "facts", *AREAS, "--format", "json").stdout)
    for area in AREAS:
        known = import_module(f"ascend_doctor.facts.{area}").collect(machine.snapshot).facts
        known_json = json.loads(json.dumps(facts_as_json({area: known})))[area]
        assert_equal_or_denied(found[area], known_json, area, {} if user == "root" else found["missing"])


def assert_equal_or_denied(found: Any, known: Any, path: str, missing: Mapping[str, Mapping[str, str]]) -> None:
    """What a user may not read is null, and said to be denied."""
    if found is None and known is not None and missing.get(path, {}).get("reason") == "denied":
        return
    assert type(found) is type(known), path
    if isinstance(known, dict):
        assert found.keys() == known.keys(), path
        for key in known:
            assert_equal_or_denied(found[key], known[key], f"{path}.{key}", missing)
    elif isinstance(known, list):
        assert len(found) == len(known), path
        for number, (one, other) in enumerate(zip(found, known)):
            assert_equal_or_denied(one, other, f"{path}[{number}]", missing)
    else:
        assert found == known, path


SIMULATED = ("command:", "env:", "file:/sys/", "file:/usr/local/Ascend", "file:/etc/", "file:/dev/davinci")

NOT_SIMULATED = {"compat.architecture", "loading.files-usable"}
"""The processor is the real one, and the libraries of test hosts are empty files."""


@pytest.mark.parametrize("name", ["a2-healthy", "a2-npu-smi-8005", "a2-chip-alarm"])
@pytest.mark.parametrize("user", USERS)
def test_the_verdict_is_that_of_the_snapshot(machines: Mapping[str, Machine], name: str, user: str) -> None:
    machine = machines[name]
    report = json.loads(machine.run(user, "preflight", "--format", "json").stdout)
    checks = load_checks([data_folder("checks")])
    situation = Situation(machine.snapshot, [data_folder("rules")])
    situation.collect(sorted({area for check in checks for area in check.areas}))
    expected = judged(checks, situation)
    findings = {(f["check"], f["subject"]): f for f in report["findings"]}
    compared = 0
    for known in expected:
        found = findings.get((known.check, known.subject))
        if (
            found
            and known.verdict != "unknown"
            and known.evidence
            and all(e.source.startswith(SIMULATED) for e in known.evidence)
        ):
            compared += 1
            denied = user != "root" and found["verdict"] in ("unknown", "skip")
            assert denied or found["verdict"] == known.verdict, (known, found)
    assert compared > 15
    if user == "root":
        errors = {f["check"] for f in report["findings"] if f["severity"] == "error"}
        assert errors - NOT_SIMULATED == {f.check for f in expected if f.severity == "error"}


def test_nothing_of_the_real_machine_is_in_a_report(machines: Mapping[str, Machine]) -> None:
    done = machines["a2-healthy"].run(USERS[0], "preflight", "--format", "json", "--facts")
    report = json.loads(done.stdout)
    assert report["host"]["hostname"] == NAME
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        assert meminfo.readline().split()[1] not in done.stdout


@pytest.mark.parametrize("name", ["a2-healthy", "a3-healthy"])
def test_few_processes_are_started_and_each_is_told(machines: Mapping[str, Machine], name: str) -> None:
    machine = machines[name]
    machine.starts()
    report = json.loads(machine.run(USERS[0], "preflight", "--format", "json").stdout)
    starts = machine.starts()
    told = [q["source"] for q in report["collection"] if q["source"].startswith("command:") and not q["missing"]]
    assert [f"command:{line}" for line in starts] == sorted(told)
    assert starts.count("npu-smi info") == 1
    assert len(starts) <= FEW_PROCESSES
