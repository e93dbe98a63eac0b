"""Whether this is a container, and which container runtimes the host has.

Sources: https://systemd.io/CONTAINER_INTERFACE/ (/run/systemd/container), the files that Docker (/.dockerenv) and
Podman (/run/.containerenv) leave, cgroup paths and overlay folders of the runtimes, sockets of the CRI runtimes
(https://kubernetes.io/docs/setup/production-environment/container-runtimes/), https://gitee.com/openeuler/iSulad.
"""

from __future__ import annotations

import re
from typing import Callable

from ascend_doctor.host import Answer, Area, Collected, Host, Missing, Parsed, Reason, Stat, decoded
from ascend_doctor.records import dataclass

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

RUNTIME_FILES = {
    "docker": ("/usr/bin/dockerd", "/usr/bin/docker", "/run/docker.sock", "/usr/local/bin/dockerd"),
    "containerd": (
        "/usr/bin/containerd",
        "/run/containerd/containerd.sock",
        "/usr/local/bin/containerd",
        "/run/k3s/containerd/containerd.sock",
    ),
    "isulad": ("/usr/bin/isulad", "/run/isulad.sock"),
    "podman": ("/usr/bin/podman",),
    "cri-o": ("/usr/bin/crio", "/run/crio/crio.sock"),
}
"""Programs and sockets, the likeliest first: one that is there is enough."""

CGROUP_KINDS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("isulad", "isulad"),
    ("lxc", "lxc"),
    ("cri-containerd", "kubernetes"),
    ("crio-", "kubernetes"),
)

OVERLAY_KINDS = (
    ("/isulad/", "isulad"),
    ("/containers/storage/", "podman"),
    ("/docker/", "docker"),
    ("/overlay2/l/", "docker"),
)

NAMED_KINDS = ("docker", "podman", "lxc")


@dataclass(frozen=True)
class Container:
    """``kind``: docker, podman, kubernetes, isulad, lxc, or empty where it is none of them or no container."""

    inside: bool | Missing
    kind: str | Missing
    runtimes: tuple[str, ...] | Missing


@dataclass(frozen=True)
class Mark:
    """What one place says: the kind of container ("" for one of unknown kind), None for no sign of one."""

    kind: str | Missing | None
    source: str
    text: str


def cgroup_mark(data: bytes) -> tuple[str | None, str]:
    """What /proc/1/cgroup says, and the line. ``0::/`` says nothing: a host without systemd has it too."""
    for line in decoded(data).splitlines():
        path = line.rpartition(":")[2]
        for word, kind in CGROUP_KINDS:
            if re.search(rf"(?:^|[/_-]){re.escape(word)}", path):
                return kind, line.strip()
    return None, ""


def mountinfo_mark(data: bytes) -> tuple[str | None, str]:
    """What the root mount says, and its line: an overlay is a container's."""
    for line in decoded(data).splitlines():
        before, _, after = line.partition(" - ")
        fields, kind_of_system = before.split(), after.split()[:1]
        if len(fields) > 4 and fields[4] == "/":
            if kind_of_system not in (["overlay"], ["aufs"], ["fuse-overlayfs"]):
                return None, line.strip()
            return next((kind for word, kind in OVERLAY_KINDS if word in after), ""), line.strip()[:400]
    return None, ""


def named_mark(data: bytes) -> tuple[str | None, str]:
    """The word that a container manager wrote into /run/systemd/container."""
    word = decoded(data).strip()[:40]
    return (word if word in NAMED_KINDS else "", word) if word else (None, "")


def collect(host: Host) -> Collected[Container]:
    """Reads three small files and looks whether some others are there; starts nothing."""
    area = Area("container")
    marks = [
        _there(host.stat("/.dockerenv"), "docker"),
        _there(host.stat("/run/.containerenv"), "podman"),
        _there(host.stat(SERVICE_ACCOUNT), "kubernetes"),
        _said(host.read("/run/systemd/container"), named_mark),
        _said(host.read("/proc/1/cgroup"), cgroup_mark),
        _said(host.read("/proc/self/mountinfo"), mountinfo_mark),
    ]
    service = host.env("KUBERNETES_SERVICE_HOST")
    if isinstance(service.value, str):
        marks.insert(0, Mark("kubernetes", service.source, "KUBERNETES_SERVICE_HOST is set"))
    return area.of(
        Container(
            inside=area.take("inside", _inside(marks)),
            kind=area.take("kind", _kind(marks)),
            runtimes=area.take("runtimes", _runtimes(host)),
        )
    )


def _there(answer: Answer[Stat], kind: str) -> Mark:
    if isinstance(answer.value, Missing):
        return Mark(None if answer.value.reason is Reason.ABSENT else answer.value, answer.source, "absent")
    return Mark(kind, answer.source, "is there")


def _said(answer: Answer[bytes], says: Callable[[bytes], tuple[str | None, str]]) -> Mark:
    if isinstance(answer.value, Missing):
        return Mark(None if answer.value.reason is Reason.ABSENT else answer.value, answer.source, "absent")
    kind, text = says(answer.value)
    return Mark(kind, answer.source, text)


def _inside(marks: list[Mark]) -> Parsed[bool | Missing]:
    """True by any mark; false only where every mark was looked for."""
    shown = next((m for m in marks if isinstance(m.kind, str)), None)
    if shown:
        return Parsed(True, shown.source, {"": shown.text})
    unseen = next((m for m in marks if isinstance(m.kind, Missing)), None)
    if unseen and isinstance(unseen.kind, Missing):
        return Parsed(unseen.kind, unseen.source, {"": unseen.kind.detail or unseen.kind.reason.value})
    return Parsed(False, marks[-1].source, {"": marks[-1].text or "no mark of a container"})


def _kind(marks: list[Mark]) -> Parsed[str | Missing]:
    inside = _inside(marks)
    if not inside.value or isinstance(inside.value, Missing):
        return Parsed("" if inside.value is False else inside.value, inside.source, inside.texts)
    kinds = [m for m in marks if isinstance(m.kind, str) and m.kind]
    best = next((m for m in kinds if m.kind == "kubernetes"), kinds[0] if kinds else None)
    return Parsed(str(best.kind), best.source, {"": best.text}) if best else Parsed("", inside.source, inside.texts)


def _runtimes(host: Host) -> Parsed[tuple[str, ...] | Missing]:
    """Those of which a program or socket is there; Missing as a whole where one could not be looked for."""
    found: dict[str, str] = {}
    for name, paths in RUNTIME_FILES.items():
        unseen: Answer[Stat] | None = None
        for path in paths:
            answer = host.stat(path)
            if not isinstance(answer.value, Missing):
                found[name] = path
                break
            if answer.value.reason is not Reason.ABSENT:
                unseen = unseen or answer
        if name not in found and unseen and isinstance(unseen.value, Missing):
            return Parsed(unseen.value, unseen.source, {"": unseen.value.detail or unseen.value.reason.value})
    places = ", ".join(found.values())
    return Parsed(tuple(found), f"file:{places or '/usr/bin'}", {"": places or "no container runtime"})
