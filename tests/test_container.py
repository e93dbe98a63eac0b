"""Containers and container runtimes."""

from __future__ import annotations

from typing import Any

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.facts.container import Container, cgroup_mark, collect, mountinfo_mark, named_mark
from ascend_doctor.host import Missing, Reason


def facts(base: str = "bare-linux", **changes: Any) -> Container:
    return collect(host(base, set=changes)).facts


DOCKER_ROOT = (
    b"612 500 0:55 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/ABC:/x,upperdir=/y\n"
)
CONTAINERD_ROOT = (
    b"1 2 0:9 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1\n"
)
PODMAN_ROOT = b"1 2 0:9 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/ABC\n"
ISULAD_ROOT = b"1 2 0:9 / / rw - overlay overlay rw,lowerdir=/var/lib/isulad/storage/overlay/l/ABC\n"
HOST_ROOT = b"28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/openeuler-root rw\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DOCKER_ROOT, "docker"),
        (CONTAINERD_ROOT, ""),
        (PODMAN_ROOT, "podman"),
        (ISULAD_ROOT, "isulad"),
        (HOST_ROOT, None),
        (b"100 28 0:40 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n" + HOST_ROOT, None),
        (b"", None),
    ],
)
def test_the_root_mount_tells_a_container_from_a_host(text: bytes, kind: str | None) -> None:
    assert mountinfo_mark(text)[0] == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"12:pids:/kubepods/besteffort/pod1/abc\n", "kubernetes"),
        (b"0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-1.scope\n", "kubernetes"),
        (b"12:devices:/docker/0a1b\n1:name=systemd:/docker/0a1b\n", "docker"),
        (b"0::/system.slice/docker-0a1b.scope\n", "docker"),
        (b"1:name=systemd:/machine.slice/libpod-1.scope\n", "podman"),
        (b"4:cpu:/lxc/box\n", "lxc"),
        (b"0::/init.scope\n", None),
        (b"0::/\n", None),
        (b"1:name=systemd:/\n", None),
    ],
)
def test_the_cgroup_of_the_first_process_names_the_runtime(text: bytes, kind: str | None) -> None:
    assert cgroup_mark(text)[0] == kind


def test_a_host_without_marks_is_no_container() -> None:
    assert facts() == Container(False, "", ())
    assert facts("a2-healthy").inside is False
    assert facts("a2-healthy").runtimes == ("docker",)


def test_a_docker_container_is_one() -> None:
    assert facts("a2-container-healthy") == Container(True, "docker", ())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"files": {"/run/.containerenv": ""}}, "podman"),
        ({"files": {"/.dockerenv": ""}, "env": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, "kubernetes"),
        ({"files": {"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "a"}}, "kubernetes"),
        ({"files": {"/run/systemd/container": "lxc\n"}}, "lxc"),
        ({"files": {"/run/systemd/container": "systemd-nspawn\n"}}, ""),
    ],
)
def test_one_mark_is_enough_even_where_others_were_not_seen(changes: dict[str, Any], kind: str) -> None:
    found = facts(**changes, missing={"/proc/1/cgroup": "denied"})
    assert (found.inside, found.kind) == (True, kind)


@pytest.mark.parametrize("mark", ["/.dockerenv", "/run/.containerenv", "/proc/1/cgroup", "/proc/self/mountinfo"])
def test_a_mark_that_was_not_looked_for_leaves_it_open(mark: str) -> None:
    found = facts(missing={mark: "not_collected"})
    assert isinstance(found.inside, Missing)
    assert found.inside.reason is Reason.NOT_COLLECTED
    assert isinstance(found.kind, Missing)


def test_each_runtime_is_found_by_a_program_or_a_socket() -> None:
    files = dict.fromkeys(("/usr/bin/isulad", "/usr/bin/podman", "/run/crio/crio.sock", "/usr/bin/containerd"), "")
    assert facts(files=files).runtimes == ("containerd", "isulad", "podman", "cri-o")


def test_a_runtime_that_could_not_be_looked_for_makes_the_list_unknown() -> None:
    found = facts("a2-healthy", missing={"/run/isulad.sock": "denied"}).runtimes
    assert isinstance(found, Missing)
    assert found.path == "container.runtimes"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    for reads in (cgroup_mark, mountinfo_mark, named_mark):
        kind, text = reads(data)
        assert kind is None or isinstance(kind, str)
        assert isinstance(text, str)
