"""What is asked of a device and not of a CPU: played by a backend that computes on the CPU and counts as it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from smoke_runs import TORCH, failed, plain, smoked, with_faults

pytestmark = TORCH

BACKEND = '''
import json, os, time, types
GIB = 1 << 30
TOLD = json.loads({told!r})


class Event:
    def __init__(self, enable_timing=False):
        pass
    def record(self):
        self.at = time.perf_counter()
    def elapsed_time(self, other):
        return 1000 * (other.at - self.at)


class Backend:
    """As torch.cuda and torch.npu are asked."""
    Event = Event
    allocated = [GIB]
    opened = TOLD["marker"]
    device_count = staticmethod(lambda: TOLD.get("count", 1))
    is_available = staticmethod(lambda: True)
    set_device = staticmethod(lambda device: None)
    current_device = staticmethod(lambda: 0)
    get_device_name = staticmethod(lambda device: "Played")
    get_device_properties = staticmethod(lambda device: types.SimpleNamespace(total_memory=64 * GIB))
    is_bf16_supported = staticmethod(lambda: TOLD.get("bf16", True))
    synchronize = empty_cache = reset_peak_memory_stats = staticmethod(lambda: None)
    max_memory_allocated = staticmethod(lambda: GIB // 16)
    max_memory_reserved = staticmethod(lambda: TOLD.get("reserved", GIB // 16))
    memory_reserved = staticmethod(lambda: GIB // 16)

    @staticmethod
    def memory_allocated():
        Backend.allocated[0] += TOLD.get("leak", 0)
        return Backend.allocated[0]

    @staticmethod
    def mem_get_info(device):
        """Less is free once an earlier process was here."""
        been = os.path.exists(Backend.opened)
        open(Backend.opened, "w").close()
        return TOLD.get("free", 60 * GIB) - (TOLD.get("kept", 0) if been else 0), 64 * GIB


began = Bench.__init__
def begin(self, plan, steps):
    began(self, plan, steps)
    self.device = torch.device("cpu")
Bench.__init__ = begin
Bench.backend = property(lambda self: Backend)
'''


def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **told: object) -> None:
    words = json.dumps({"marker": str(tmp_path / "been"), **told})
    faults = {
        "ascend_doctor_children.stages.bench": BACKEND.replace("{told!r}", repr(words)),
        "ascend_doctor_children.stages.probes": "probes = lambda kind: []",
    }
    with_faults(tmp_path / "faults", monkeypatch, faults)


def test_a_good_device_passes_in_the_numbers_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its latency is that of a machine which does other things, too."""
    played(tmp_path, monkeypatch, bf16=False)
    collected = smoked(device="cuda:0")
    (device,) = collected.facts.devices  # type: ignore[misc]
    assert device.dtype == "fp16"
    verdicts = plain(collected)
    asked = {check: verdict for check, verdict in verdicts.items() if check not in ("smoke.ranks", "smoke.latency")}
    assert set(asked.values()) == {"pass"}


@pytest.mark.parametrize(
    ("told", "check", "words"),
    [
        ({"leak": 1 << 20}, "smoke.memory", "each iteration takes 1 MiB more"),
        ({"kept": 1 << 30}, "smoke.memory", "1024 MiB of cuda:0 are still taken after the process has ended"),
        ({"count": 0}, "smoke.device", "torch sees no cuda:0"),
    ],
)
def test_what_a_device_does_wrong_is_told(
    told: dict[str, object], check: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path, monkeypatch, **told)
    found = failed(smoked(device="cuda:0"))
    assert words in (found[check].found or {})["en"]


def test_less_free_memory_than_predicted_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path, monkeypatch, free=100 << 20)
    verdicts = plain(smoked(device="cuda:0"))
    assert verdicts["smoke.device"] == "unknown"
    assert verdicts["smoke.forced"] == "skip"
