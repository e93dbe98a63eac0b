"""CANN installations in every layout, and which one is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.cann import Root, collect
from ascend_doctor.host import Missing, Reason

CAPTURES = Path(__file__).parent / "captures" / "cann"
BASE = "/usr/local/Ascend"
UNSET: dict[str, None] = {"ASCEND_HOME_PATH": None, "ASCEND_TOOLKIT_HOME": None}
UNSEEN = {"ASCEND_HOME_PATH": {"missing": "not_collected"}}


def roots(base: str = "bare-linux", **changes: Any) -> tuple[Root, ...]:
    found = collect(host(base, set=changes)).facts.roots
    assert not isinstance(found, Missing), found
    return found


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


def link(path: str, target: str) -> dict[str, str]:
    return {"path": path, "type": "link", "target": target}


@pytest.mark.parametrize(
    ("name", "root", "version", "inner"),
    [
        ("7.0.RC1-310b", "ascend-toolkit/7.0.RC1", "7.0.RC1", "V100R001C13SPC005B246"),
        ("8.0.0", "ascend-toolkit/8.0.0", "8.0.0", "V100R001C20SPC001B251"),
        ("8.1.RC1", "ascend-toolkit/8.1.RC1", "8.1.RC1", "V100R001C21SPC001B238"),
        ("8.3.RC1", "ascend-toolkit/8.3.RC1", "8.3.RC1", "V100R001C23B085"),
        ("8.5.0-cann-layout", "cann-8.5.0", "8.5.0", "V100R001C25SPC001B212"),
        ("8.5.0-field", "cann-8.5.0", "8.5.0", "V100R001C25SPC001B232"),
        ("9.1.0-x86-excerpt", "cann-9.1.0", "9.1.0", "V100R001C11SPC001B243"),
    ],
)
def test_every_layout_is_found(name: str, root: str, version: str, inner: str) -> None:
    arch = "x86_64" if "x86" in name else "aarch64"
    file = f"{BASE}/{root}/{arch}-linux/ascend_toolkit_install.info"
    (found,) = roots(files={file: capture(f"ascend_toolkit_install.info-{name}.txt")})
    assert (found.path, found.version, found.innerversion) == (f"{BASE}/{root}", version, inner)
    assert (found.kind, found.arch, found.selected_by) == ("toolkit", arch, "the only one")


@pytest.mark.parametrize(
    "files",
    [
        {"version.cfg": "version.cfg-8.1.RC1.txt"},
        {"compiler/version.info": "compiler-version.info-8.1.RC1.txt"},
        {"runtime/version.info": "runtime-version.info-8.1.RC1.txt"},
    ],
)
def test_without_an_install_file_other_files_name_the_release_and_not_the_component(files: dict[str, str]) -> None:
    home = f"{BASE}/ascend-toolkit/8.1"
    (found,) = roots(files={f"{home}/{path}": capture(name) for path, name in files.items()})
    assert found.version == "8.1.RC1"


def test_links_to_a_root_are_the_same_root() -> None:
    (found,) = roots("a2-healthy")
    assert (found.path, found.selected, found.selected_by) == (f"{BASE}/cann-8.5.0", True, "ASCEND_HOME_PATH")
    assert found.set_env == f"{BASE}/cann-8.5.0/set_env.sh"
    (linked,) = roots("a2-healthy", env=UNSET)
    assert (linked.selected, linked.selected_by) == (True, f"{BASE}/cann")


def test_a_folder_of_links_named_latest_is_the_version_behind_it() -> None:
    home = f"{BASE}/ascend-toolkit"
    (found,) = roots(
        files={
            f"{home}/8.1.RC1/aarch64-linux/ascend_toolkit_install.info": "version=8.1.RC1\n",
            f"{home}/8.1.RC1/runtime/version.info": "version_dir=8.1.RC1\n",
            f"{home}/latest/version.cfg": capture("version.cfg-8.1.RC1.txt"),
            f"{home}/set_env.sh": "export ASCEND_HOME_PATH=...\n",
        },
        entries=[
            link(f"{home}/latest/aarch64-linux", "../8.1.RC1/aarch64-linux"),
            link(f"{home}/latest/runtime", "../8.1.RC1/runtime"),
        ],
        env={"ASCEND_HOME_PATH": f"{home}/latest"},
    )
    assert (found.path, found.selected_by) == (f"{home}/8.1.RC1", "ASCEND_HOME_PATH")
    assert found.set_env == f"{home}/set_env.sh"


def test_the_environment_selects_one_of_several_wherever_it_is() -> None:
    found = roots(
        "a2-healthy",
        files={
            "/opt/Ascend/cann-9.0.0/aarch64-linux/ascend_toolkit_install.info": "version=9.0.0\narch=aarch64\n",
            f"{BASE}/nnae/8.0.RC3/aarch64-linux/ascend_nnae_install.info": "version=8.0.RC3\narch=aarch64\n",
        },
        entries=[link("/opt/Ascend/cann", "cann-9.0.0")],
        env={"ASCEND_HOME_PATH": "/opt/Ascend/cann"},
    )
    assert [(root.kind, root.version, root.selected) for root in found] == [
        ("toolkit", "9.0.0", True),
        ("toolkit", "8.5.0", False),
        ("nnae", "8.0.RC3", False),
    ]


def test_what_an_uninstaller_left_is_no_installation() -> None:
    found = collect(host("bare-linux", set={"files": {f"{BASE}/ascend-toolkit/8.1.RC1/tools/x": ""}})).facts.roots
    assert isinstance(found, Missing)
    assert found.reason is Reason.ABSENT


def test_links_that_turn_in_a_circle_lead_nowhere() -> None:
    circle = [link(f"{BASE}/cann", "cann"), link(f"{BASE}/ascend-toolkit/latest", "../cann")]
    found = collect(host("bare-linux", set={"entries": circle})).facts.roots
    assert isinstance(found, Missing)


def test_folders_of_links_that_turn_in_a_circle_end() -> None:
    turns = {"a": "b", "b": "c", "c": "a"}
    entries = [link(f"/opt/{x}/latest/aarch64-linux", f"/opt/{y}/latest/aarch64-linux") for x, y in turns.items()]
    found = collect(host("bare-linux", set={"entries": entries, "env": {"ASCEND_HOME_PATH": "/opt/a/latest"}}))
    assert isinstance(found.facts.roots, Missing)


@pytest.mark.parametrize("place", [BASE, f"{BASE}/ascend-toolkit", f"{BASE}/cann-8.5.0"])
@pytest.mark.parametrize("reason", ["denied", "not_collected", "timeout"])
def test_a_place_that_nobody_could_look_at_makes_the_list_unknown(place: str, reason: str) -> None:
    found = collect(host("a2-healthy", set={"missing": {place: reason}})).facts.roots
    assert isinstance(found, Missing)
    assert (found.reason.value, found.path) == (reason, "cann.roots")


def test_an_unseen_environment_hides_the_selection_not_the_installation() -> None:
    (found,) = roots("a2-healthy", env=UNSEEN)
    assert isinstance(found.selected, Missing)
    assert found.version == "8.5.0"
    nothing = collect(host("bare-linux", set={"env": UNSEEN})).facts.roots
    assert isinstance(nothing, Missing)
    assert nothing.reason is Reason.NOT_COLLECTED


@given(st.binary(max_size=200))
def test_any_bytes_in_its_files_give_a_version_or_missing(data: bytes) -> None:
    text = data.decode("latin-1")
    home = f"{BASE}/cann-8.5.0"
    (found,) = roots(files={f"{home}/aarch64-linux/ascend_toolkit_install.info": text, f"{home}/version.cfg": text})
    assert isinstance(found.version, (str, Missing))
