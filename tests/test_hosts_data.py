"""The test hosts as data: written by their generator, whole, and at one with themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_doctor.facts import cann, driver, library_path, npu, pci
from ascend_doctor.host import Missing
from ascend_doctor.host.delta import open_host
from ascend_doctor.host.snapshot import SnapshotHost

TESTS = Path(__file__).parent
HOSTS = TESTS / "hosts"
EXAMPLE = TESTS.parent / "reports" / "example"
BASES = sorted(path.parent.name for path in HOSTS.glob("*/snapshot.json"))
WITH_NPUS = [name for name in BASES if name != "bare-linux"]


def opened(name: str) -> SnapshotHost:
    return open_host(EXAMPLE if name == "example" else HOSTS / name, HOSTS)


def content(folder: Path) -> dict[str, bytes]:
    paths = [folder / "snapshot.json", *(p for part in ("files", "commands") for p in (folder / part).rglob("*"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    subprocess.run([sys.executable, "-B", str(HOSTS / "generate.py"), str(root)], check=True)
    return root


@pytest.mark.parametrize("name", [*BASES, "example"])
def test_a_base_is_what_the_generator_writes(name: str, written: Path) -> None:
    folder = EXAMPLE if name == "example" else HOSTS / name
    there, made = content(folder), content(written / folder.relative_to(TESTS.parent))
    assert sorted(there) == sorted(made), "change tests/hosts/generate.py and run it"
    assert [path for path in there if there[path] != made[path]] == []


@pytest.mark.parametrize("name", [*BASES, "example"])
def test_every_answer_of_a_base_has_its_bytes_and_no_bytes_are_left_over(name: str) -> None:
    folder = EXAMPLE if name == "example" else HOSTS / name
    document = json.loads((folder / "snapshot.json").read_text(encoding="utf-8"))
    named = {command["stdout"] for command in document["commands"] if "stdout" in command}
    assert document["complete"] is True
    assert named == {str(path.relative_to(folder)) for path in (folder / "commands").glob("*")}
    listed = [(entry["path"], name) for entry in document["entries"] for name in entry.get("names", ())]
    there = {entry["path"] for entry in document["entries"]}
    assert [pair for pair in listed if f"{pair[0]}/{pair[1]}" not in there] == []


@pytest.mark.parametrize("name", [*WITH_NPUS, "example"])
def test_the_lines_of_a_table_are_equally_long(name: str) -> None:
    output = opened(name).run(["npu-smi", "info"]).value
    assert not isinstance(output, Missing)
    assert len({len(line) for line in output.stdout.decode().splitlines()}) == 1


@pytest.mark.parametrize("name", [*WITH_NPUS, "example"])
def test_every_card_of_the_table_is_on_the_bus_with_the_drivers_version(name: str) -> None:
    host = opened(name)
    table, bus = npu.collect(host).facts, pci.collect(host).facts
    assert not isinstance(table.chips, Missing)
    assert not isinstance(bus.npus, Missing)
    on_the_bus = {chip.bus_id.lower() for chip in table.chips if isinstance(chip.bus_id, str)}
    assert on_the_bus <= set(bus.npus)
    assert table.driver_version == driver.collect(host).facts.version


@pytest.mark.parametrize("name", WITH_NPUS)
def test_a_healthy_base_has_one_selected_toolkit_and_every_library_folder(name: str) -> None:
    host = opened(name)
    roots, entries = cann.collect(host).facts.roots, library_path.collect(host).facts.entries
    assert not isinstance(roots, Missing)
    assert [root.selected for root in roots] == [True]
    assert not isinstance(entries, Missing)
    assert [entry.text for entry in entries if entry.type != "dir"] == []


def test_the_example_has_the_faults_that_it_is_made_for() -> None:
    host = opened("example")
    table, bus = npu.collect(host).facts, pci.collect(host).facts
    entries = library_path.collect(host).facts.entries
    assert not isinstance(entries, Missing)
    assert not isinstance(table.health_reports, Missing)
    assert not isinstance(bus.npus, Missing)
    assert [report.codes for report in table.health_reports] == [("80E01801",)]
    assert [address for address, card in bus.npus.items() if card.current_width == 8] == ["0000:02:00.0"]
    assert entries[0].stub
    assert [entry.text for entry in entries if entry.type != "dir"] == ["/opt/ops/lib"]
