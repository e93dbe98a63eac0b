"""Test hosts: ``host("a2-healthy")`` answers like that machine; ``set=`` changes some answers (words of host.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascend_doctor.host.delta import changed, host_names
from ascend_doctor.host.delta import expectations as expected_of
from ascend_doctor.host.delta import profile_of as name_of_profile
from ascend_doctor.host.snapshot import SnapshotHost
from ascend_doctor.knowledge.profile import Profile, profile
from ascend_doctor.paths import data_folder

FOLDER = Path(__file__).parent / "hosts"


def host(name: str, set: Mapping[str, Any] | None = None) -> SnapshotHost:
    return changed(FOLDER / name, FOLDER, set or {})


def all_hosts() -> list[str]:
    return host_names(FOLDER)


def expectations(name: str) -> list[dict[str, str]]:
    """Every error and warning that the host must give."""
    return expected_of(FOLDER / name)


def profile_of(name: str) -> Profile:
    """By which the host is judged: none, unless its host.yaml names one."""
    named = name_of_profile(FOLDER / name)
    return profile(named, [data_folder("rules")]) if named else Profile()
