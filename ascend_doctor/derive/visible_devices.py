"""What ASCEND_RT_VISIBLE_DEVICES and ASCEND_VISIBLE_DEVICES let through, against the devices that there are.

The runtime of CANN reads the first as numbers parted by commas and stops at the first character or number that does
not fit; the second is read by Ascend Docker Runtime alone, when it makes a container.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_doctor.derive import rows
from ascend_doctor.facts.container import Container
from ascend_doctor.facts.devices import Devices
from ascend_doctor.facts.env import Env
from ascend_doctor.facts.npu import Npu
from ascend_doctor.host import Missing, Reason

RUNTIME, MOUNTED = "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"
VIRTUAL = ("ASCEND_RUNTIME_OPTIONS", "ASCEND_VNPU_SPECS")
CARD = re.compile(r"/dev/davinci\d+", re.ASCII)
NUMBER = re.compile(r"\d{1,5}", re.ASCII)
PART = re.compile(r"(?:Ascend\w+-)?(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
MOST = 1024
"""Devices that one range may name: more is no list of cards."""


@dataclass(frozen=True)
class Chosen:
    """``problem``: empty, duplicate, cut, beyond, order, or nothing; ``used``: the devices that are left, as text.

    ``beyond`` and ``cut`` leave what stands before; ``count``: the devices that there are.
    """

    value: str
    problem: str | Missing
    used: str
    count: int | Missing
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Mounted:
    """``problem``: outside (no container), ignored (other cards are there), shifted (none is 0), or nothing."""

    value: str
    problem: str | Missing
    nodes: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """A list as the runtime reads it: the numbers before ``rest``, which does not fit."""

    numbers: tuple[int, ...]
    rest: str


@rows("visible_devices.chosen")
def chosen(env: Env, npu: Npu, devices: Devices, container: Container) -> tuple[Chosen, ...] | Missing:
    """One row where ASCEND_RT_VISIBLE_DEVICES is set."""
    value = env.get(RUNTIME)
    if value is None or isinstance(value, Missing):
        return value if value is not None and value.reason is not Reason.ABSENT else ()
    reading = read(value)
    count: int | Missing = npu.chips if isinstance(npu.chips, Missing) else len(npu.chips)
    reads = (f"env.{RUNTIME}", "npu.chips", "devices.nodes", "container.inside")
    problem, used = _problem(value, reading), reading.numbers
    if problem in ("", "order", "cut"):
        beyond = _beyond(reading.numbers, count, devices, container)
        if isinstance(beyond, Missing):
            return (Chosen(value, problem or beyond, _text(used), count, reads),)
        if beyond < len(used):
            problem, used = "beyond", used[:beyond]
    return (Chosen(value, problem, _text(used), count, reads),)


@rows("visible_devices.mounted")
def mounted(env: Env, devices: Devices, container: Container) -> tuple[Mounted, ...] | Missing:
    """One row where ASCEND_VISIBLE_DEVICES names whole cards; nothing is wrong where programs choose for themselves."""
    value, chooses = env.get(MOUNTED), env.get(RUNTIME)
    for given in (value, chooses):
        if isinstance(given, Missing) and given.reason is not Reason.ABSENT:
            return given
    wanted = numbers_of(value) if isinstance(value, str) else ()
    if not isinstance(value, str) or not wanted or any(isinstance(env.get(name), str) for name in VIRTUAL):
        return ()
    reads = (f"env.{MOUNTED}", f"env.{RUNTIME}", "container.inside", "devices.nodes")
    if isinstance(chooses, str) and chooses:
        return (Mounted(value, "", "", reads),)
    if isinstance(container.inside, Missing) or isinstance(devices.nodes, Missing):
        unseen = container.inside if isinstance(container.inside, Missing) else devices.nodes
        return (Mounted(value, unseen if isinstance(unseen, Missing) else "", "", reads),)
    if not container.inside:
        return (Mounted(value, "outside", "", reads),)
    there = _cards(devices)
    problem = "ignored" if set(wanted) != set(there) else "shifted" if there and there[0] > 0 else ""
    return (Mounted(value, problem, _text(there), reads),)


def read(text: str) -> Reading:
    """The list as the runtime of CANN reads it."""
    numbers: list[int] = []
    parts = text.split(",")
    for index, part in enumerate(parts):
        found = NUMBER.match(part)
        if found is None:
            return Reading(tuple(numbers), ",".join(parts[index:]))
        numbers.append(int(found[0]))
        if found.end() != len(part):
            return Reading(tuple(numbers), ",".join([part[found.end() :], *parts[index + 1 :]]))
    return Reading(tuple(numbers), "")


def numbers_of(text: str) -> tuple[int, ...]:
    """``0-2,4`` and ``Ascend910-1,Ascend910-3`` as numbers; nothing where a part is neither."""
    numbers: list[int] = []
    for part in text.split(","):
        found = PART.fullmatch(part.strip())
        if found is None:
            return ()
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < MOST:
            return ()
        numbers.extend(range(first, last + 1))
    return tuple(sorted(set(numbers)))


def _problem(value: str, reading: Reading) -> str:
    if not value.strip():
        return "empty"
    if len(set(reading.numbers)) < len(reading.numbers):
        return "duplicate"
    if reading.rest:
        return "cut"
    return "order" if list(reading.numbers) != sorted(reading.numbers) else ""


def _beyond(numbers: tuple[int, ...], count: int | Missing, devices: Devices, container: Container) -> int | Missing:
    """How many numbers stand before the first that no device has; a container may count its cards as the host does."""
    if isinstance(count, Missing):
        return count
    by_order = _before(numbers, set(range(count)))
    if container.inside is False or by_order == len(numbers):
        return by_order
    if isinstance(devices.nodes, Missing):
        return devices.nodes
    by_node = _before(numbers, {*range(count), *_cards(devices)})
    return container.inside if isinstance(container.inside, Missing) and by_node != by_order else by_node


def _before(numbers: tuple[int, ...], allowed: set[int]) -> int:
    return next((index for index, number in enumerate(numbers) if number not in allowed), len(numbers))


def _cards(devices: Devices) -> tuple[int, ...]:
    if isinstance(devices.nodes, Missing):
        return ()
    return tuple(sorted(int(re.sub(r"\D", "", path)) for path in devices.nodes if CARD.fullmatch(path)))


def _text(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
