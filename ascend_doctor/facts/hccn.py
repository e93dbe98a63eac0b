"""The NPUs' own network ports: what /etc/hccn.conf wants, and what hccn_tool says that they have.

Sources: hccn_tool of Huawei's driver, https://github.com/hicann/driver (docs, HCCN_Tool);
https://github.com/Ascend/mind-cluster, docs, faultdiag, collecting logs. The 950's tool takes its options in another
order and prints tables. hccn_tool takes five starts an NPU, so it is asked only in depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_doctor.host import (
    Answer,
    Area,
    Collected,
    Host,
    Missing,
    Output,
    Parsed,
    Reason,
    Shown,
    decoded,
    keyed,
    parsed,
)
from ascend_doctor.records import dataclass

CONF = "/etc/hccn.conf"
TOOL = "hccn_tool"
NOT_ASKED = Missing(Reason.NOT_COLLECTED, "hccn_tool is asked only in depth")
_NODE = re.compile(r"davinci(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Setting:
    """The lines of one NPU in hccn.conf: ``address_0=...``."""

    npu: int
    address: str | Missing
    netmask: str | Missing
    gateway: str | Missing
    detected: str | Missing


@dataclass(frozen=True)
class Port:
    """``link``: UP or DOWN; ``health``: Success, Init, Fault ...; ``tls``: whether the switch is on.

    ``optical_celsius`` is absent where no optical module is plugged in.
    """

    npu: int
    link: str | Missing
    address: str | Missing
    netmask: str | Missing
    health: str | Missing
    tls: bool | Missing
    optical_celsius: float | Missing
    optical_high_celsius: float | Missing


@dataclass(frozen=True)
class Hccn:
    """By NPU: ``conf[0]``, ``ports[0]``. ``asked``: whether hccn_tool gave an answer of any kind."""

    conf: dict[int, Setting] | Missing
    asked: bool
    ports: dict[int, Port] | Missing


def settings(data: bytes) -> Shown[dict[int, Setting]]:
    """hccn.conf; an NPU that any line names is in it."""
    lines = re.findall(r"(?m)^[ \t]*([a-z_]{1,40})_(\d{1,5})[ \t]*=[ \t]*(\S{1,100})[ \t]*$", decoded(data), re.ASCII)
    values = {(name, int(npu)): value for name, npu, value in lines}
    found: dict[int, Setting] = {}
    texts: dict[str, str] = {}
    for npu in sorted({npu for _, npu in values}):
        names = ("address", "netmask", "gateway", "netdetect")
        found[npu] = Setting(npu, *(_setting(values, name, npu) for name in names))
        texts[f"[{npu}]"] = ", ".join(f"{n}_{npu}={values[n, npu]}" for n in names if (n, npu) in values)
    return Shown(found, {"": f"{len(found)} NPUs", **texts})


def _setting(values: Mapping[tuple[str, int], str], name: str, npu: int) -> str | Missing:
    return values.get((name, npu), Missing(Reason.ABSENT, f"no {name}_{npu}="))


def link_state(text: str) -> str | Missing:
    """UP of ``link status: UP``; of a 950's table UP where each port is, DOWN where one is not."""
    found = re.search(r"(?m)^\s*link status:\s*([A-Za-z]{1,20})\s*$", text)
    if found:
        return found[1].upper()
    states = re.findall(r"(?m)^\|\s*\d+\s*\|\s*\d+\s*\|[^|\n]*\|[^|\n]*\|\s*(UP|DOWN)\s*\|", text)
    if states:
        return "UP" if set(states) == {"UP"} else "DOWN"
    return _unanswered(text)


def ip_address(text: str) -> str | Missing:
    """10.0.0.2 of ``ipaddr:10.0.0.2``; absent where the tool says that none was set."""
    if "no ip was preset" in text:
        return Missing(Reason.ABSENT, "no address is set in the device")
    return _word(text, r"ipaddr")


def netmask(text: str) -> str | Missing:
    return _word(text, r"netmask")


def health_word(text: str) -> str | Missing:
    found = re.search(r"(?m)^\s*net health status:\s*(\S[^\n]{0,60}?)\s*$", text)
    return found[1] if found else _unanswered(text)


def tls_switch(text: str) -> bool | Missing:
    """Of ``dev_id:0, tls switch[0](0:disable, 1:enable), ...``."""
    found = re.search(r"tls switch\[([01])\]", text)
    return found[1] == "1" if found else _unanswered(text)


def optical(text: str) -> tuple[float | Missing, float | Missing]:
    """The module's temperature and the one that it should stay below."""
    if re.search(r"(?m)^\s*present\s*:\s*not present", text):
        missing = Missing(Reason.ABSENT, "no optical module")
        return missing, missing
    return _celsius(text, r"temp(?:erature)?"), _celsius(text, r"Temp High Thres")


def _celsius(text: str, name: str) -> float | Missing:
    found = re.search(rf"(?mi)^\s*{name}\s*:\s*(-?\d{{1,4}}(?:\.\d{{1,4}})?)\s*C\b", text, re.ASCII)
    return float(found[1]) if found else _unanswered(text)


def _word(text: str, name: str) -> str | Missing:
    found = re.search(rf"(?m)^\s*{name}\s*:\s*([0-9A-Fa-f.:]{{2,45}})\s*$", text)
    return found[1] if found else _unanswered(text)


def _unanswered(text: str) -> Missing:
    return Missing(Reason.FAILED, f"hccn_tool: {text.strip()[:120]}" if text.strip() else "hccn_tool printed nothing")


def collect(host: Host) -> Collected[Hccn]:
    """Reads one file; starts hccn_tool only where the host is asked in depth."""
    area = Area("hccn")
    wanted: Parsed[dict[int, Setting]] = parsed(host.read(CONF), settings)
    conf = area.take("conf", wanted)
    if not host.extent.deep:
        return area.of(Hccn(conf=conf, asked=False, ports=NOT_ASKED))
    names = host.list("/dev")
    if isinstance(names.value, Missing):
        return area.of(Hccn(conf=conf, asked=False, ports=names.value))
    numbers = sorted(int(found[1]) for found in map(_NODE.fullmatch, names.value) if found)
    ports = {number: _port(host, area, number) for number in numbers}
    asked = any(not _unasked(port.link) or not _unasked(port.address) for port in ports.values())
    return area.of(Hccn(conf=conf, asked=asked, ports=ports if asked else NOT_ASKED))


def _unasked(value: object) -> bool:
    return isinstance(value, Missing) and value.reason is Reason.NOT_COLLECTED


def _port(host: Host, area: Area, npu: int) -> Port:
    path = keyed("ports", npu)
    link = _asked(host, npu, "link")
    if isinstance(link.value, str) and isinstance(link_state(link.value), Missing):
        link = _text(host.run((TOOL, "-g", "-dev_info", "-i", str(npu))))  # as a 950 wants it
    address, optics = _asked(host, npu, "ip"), _asked(host, npu, "optical")
    now, high = (optics.value, optics.value) if isinstance(optics.value, Missing) else optical(optics.value)
    shown = {"": "no answer" if isinstance(now, Missing) else f"temperature {now} C, Temp High Thres {high} C"}
    return Port(
        npu,
        link=area.take(f"{path}.link", parsed(link, link_state)),
        address=area.take(f"{path}.address", parsed(address, ip_address)),
        netmask=area.take(f"{path}.netmask", parsed(address, netmask)),
        health=area.take(f"{path}.health", parsed(_asked(host, npu, "net_health"), health_word)),
        tls=area.take(f"{path}.tls", parsed(_asked(host, npu, "tls"), tls_switch)),
        optical_celsius=area.take(f"{path}.optical_celsius", Parsed(now, optics.source, shown)),
        optical_high_celsius=area.take(f"{path}.optical_high_celsius", Parsed(high, optics.source, shown)),
    )


def _asked(host: Host, npu: int, what: str) -> Answer[str]:
    return _text(host.run((TOOL, "-i", str(npu), f"-{what}", "-g")))


def _text(answer: Answer[Output]) -> Answer[str]:
    """Both streams: the tool writes its refusals to either."""
    value = answer.value
    text = value if isinstance(value, Missing) else decoded(value.stdout + b"\n" + value.stderr)
    return Answer(answer.source, text, answer.seconds)
