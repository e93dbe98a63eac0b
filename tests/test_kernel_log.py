from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.kernel_log import bus_errors, heartbeats, kills
from ascend_doctor.facts import kernel_log, pci
from ascend_doctor.facts.kernel_log import KernelLog, collect, log_lines, printed, uptime
from ascend_doctor.host import Answer, Host, Missing, Output, Reason
from ascend_doctor.knowledge import kernel_signatures, limits
from ascend_doctor.knowledge.reading import RuleError

CAPTURES = Path(__file__).parent / "captures" / "kernel-log"
RULES = [Path(__file__).parent.parent / "rules"]
SIGNATURES = kernel_signatures.load(RULES)
LIMITS = limits.load(RULES)


def facts_of(name: str) -> KernelLog:
    """The facts that a log would give, as dmesg's output."""
    data = (CAPTURES / f"{name}.log").read_bytes()
    machine = host("a2-healthy", set={"commands": [{"argv": ["dmesg"], "rc": 0, "stdout": ""}]})
    return collect(_Printing(machine, data)).facts


class _Printing:
    """A host whose dmesg prints these bytes."""

    def __init__(self, machine: Host, data: bytes) -> None:
        self._machine, self._data = machine, data

    def __getattr__(self, name: str):
        return getattr(self._machine, name)

    def run(self, argv: object) -> Answer[Output]:
        return Answer("command:dmesg", Output(0, self._data, b""))


NPU_BELOW_THE_PORT = "0000:81:00.0"
"""Of a2-healthy: the card below 0000:80:00.0, which the captured log blames."""


@pytest.mark.parametrize(
    ("name", "lost", "killed", "fatal"),
    [
        ("dmesg-clean-aer-corrected", 0, 0, 0),
        ("dmesg-clean-devmm-release", 0, 0, 0),
        ("dmesg-heartbeat-lost", 1, 0, 0),
        ("dmesg-pcie-aer-fatal", 1, 0, 1),
        ("dmesg-udis-state5-dead-device", 1, 0, 0),
        ("dmesg-vnpu-device-not-initialized", 0, 0, 0),
        ("dmesg-zh-locale-gb18030-crlf", 0, 1, 0),
        ("messages-oom-killer", 0, 1, 0),
    ],
)
def test_a_public_log_tells_what_happened_and_no_more(name: str, lost: int, killed: int, fatal: int) -> None:
    facts, bus = facts_of(name), pci.collect(host("a2-healthy")).facts
    rows = bus_errors(facts, bus, SIGNATURES, LIMITS)
    assert heartbeats(facts, SIGNATURES, LIMITS)[0].count == lost
    assert kills(facts, SIGNATURES, LIMITS)[0].count == killed
    assert {row.address: row.fatal for row in rows if row.fatal} == ({NPU_BELOW_THE_PORT: 1} if fatal else {})
    assert not any(row.many_corrected for row in rows)


def test_the_device_the_process_and_the_time_are_told() -> None:
    row = heartbeats(facts_of("dmesg-heartbeat-lost"), SIGNATURES, LIMITS)[0]
    assert (row.which, row.hours_ago) == ("1", round((1209600.41 - 1197.58) / 3600, 1))
    assert kills(facts_of("messages-oom-killer"), SIGNATURES, LIMITS)[0].which == "python3 (25315)"


def test_a_line_without_seconds_counts_as_of_now() -> None:
    row = heartbeats(facts_of("dmesg-udis-state5-dead-device"), SIGNATURES, LIMITS)[0]
    assert row.recent
    assert isinstance(row.hours_ago, Missing)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5", "bus-corrected"),
        ("pcieport 0000:00:1c.5: PCIe Bus Error: severity=Correctable, type=Physical Layer", "bus-corrected"),
        ("nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Inaccessible", "bus-fatal"),
        ("x 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Trans", "bus-uncorrected"),
        ("Killed process 91 (a b) total-vm:1kB", "killed-for-memory"),
        ("Memory cgroup out of memory: Killed process 91 (java) total-vm:1kB", "killed-for-memory"),
        ("Killed process 91, UID 1000, (java) total-vm:1kB", "killed-for-memory"),
        ("x (device_id=3; current_count=1) Heartbeat lost! (device_id=3; current_count=1)", "heartbeat-lost"),
        ("oom_reaper: reaped process 91002 (python3), now anon-rss:0kB", None),
        ("udis device state is not ready. (udevid=0; state=3)", None),  # somebody resets it
    ],
)
def test_the_forms_of_several_kernels_and_drivers_are_known(text: str, event: str | None) -> None:
    found = SIGNATURES.found(text)
    assert (found[0] if found else None) == event


def test_a_log_that_is_kept_from_the_user_is_denied_and_not_silent() -> None:
    facts = collect(host("a2-kernel-log-denied")).facts
    assert isinstance(facts.lines, Missing)
    assert facts.lines.reason is Reason.DENIED


def test_an_empty_log_says_nothing() -> None:
    value = printed(Answer("command:dmesg", Output(0, b"\n", b"")))
    assert isinstance(value, Missing)
    assert value.reason is Reason.FAILED


def test_a_missing_program_and_a_log_that_was_cut_off_leave_it_open() -> None:
    for value in (Missing(Reason.ABSENT, "no such program"), Output(0, b"[ 1.0] x\n" * 500_000, b"")):
        lines = printed(Answer("command:dmesg", value))
        assert isinstance(lines, Missing)
        assert lines.reason is Reason.FAILED


def test_errors_of_other_devices_are_not_the_npus() -> None:
    machine = host("a2-bus-noisy")
    rows = bus_errors(kernel_log.collect(machine).facts, pci.collect(machine).facts, SIGNATURES, LIMITS)
    counted = {row.address: (row.fatal, row.uncorrected, row.corrected) for row in rows}
    assert counted["0000:c1:00.0"] == (0, 1, 0)
    assert counted["0000:41:00.0"] == (0, 0, 100)
    assert sum(sum(counts) for counts in counted.values()) == 101


def test_a_flood_is_read_whole() -> None:
    flood = "".join(f"[{n:5d}.000000] [ascend] [ERROR] [x] noise {n}\n" for n in range(20000))
    lost = "[20001.000000] [ascend] [ERROR] [drv_soft_fault] Heartbeat lost! (device=7; old_count=1)\n"
    machine = _Printing(
        host("a2-healthy"), (flood[: len(flood) // 2] + "\n" + lost + flood[len(flood) // 2 :]).encode()
    )
    assert heartbeats(collect(machine).facts, SIGNATURES, LIMITS)[0].which == "7"


@given(st.binary(max_size=400))
def test_any_bytes_give_lines(data: bytes) -> None:
    assert all(isinstance(line.text, str) for line in log_lines(data))
    assert isinstance(uptime(data), (float, Missing))


HEAD = (
    '- id: kernel.fire\n  kind: [kernel]\n  layer: hardware\n  role: root\n  severity: error\n  anchors: ["burning"]\n'
)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "  event: fire\n  regex: 'burning'\n",
        HEAD + "  event: heartbeat-lost\n  regex: 'burning('\n",
        HEAD + "  event: heartbeat-lost\n",
        "- event: heartbeat-lost\n  regex: 'burning'\n",
        "- [burning]\n",
    ],
)
def test_a_wrong_signature_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "signatures").mkdir()
    (tmp_path / "signatures" / "kernel.yaml").write_text(text)
    with pytest.raises(RuleError, match=r"kernel\.yaml: (?:entry 1|kernel.fire)"):
        kernel_signatures.load([tmp_path])


def test_a_machine_without_dmesg_is_read_from_the_kernel_itself() -> None:
    ring = (
        "6,1,2000000,-;usb 1-1: new device\n"
        " SUBSYSTEM=usb\n"
        "3,2,99000000,-;Out of memory: Killed process 4242 (python3) total-vm:100kB\n"
    )
    machine = host("a2-healthy", set={"missing": {"dmesg": "absent"}, "files": {"/dev/kmsg": ring}})
    facts = collect(machine).facts
    assert not isinstance(facts.lines, Missing)
    assert [(line.seconds, line.text.split(" ", 4)[:4]) for line in facts.lines] == [
        (99.0, ["Out", "of", "memory:", "Killed"])
    ]
    assert (facts.count, facts.first_seconds) == (2, 2.0)
