"""What the weight files of a checkpoint hold, from their headers alone: names, types, shapes and bytes of tensors.

Source: the format's own description, https://github.com/huggingface/safetensors (8 bytes of length, JSON, data).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

from ascend_doctor.host import Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 100_000_000
"""Bytes: safetensors itself refuses a longer header."""
LARGEST = 1 << 60
FILE_LIMIT = 4096
"""Weight files of one checkpoint."""
POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class Tensor:
    """``count`` tensors of one type and shape; more than one only for the experts of a layer, whose number is ``*``.

    ``bytes``: of the data of all of them.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    bytes: int


Found = dict[tuple[str, str, "tuple[int, ...]"], "list[int]"]
"""Name, type and shape -> count and bytes."""


def header(stream: BinaryIO, found: Found) -> Missing | None:
    """Adds the tensors that the header at the begin of a file names; the data are not read."""
    head = stream.read(8)
    if head and POINTER.startswith(head):
        return Missing(Reason.FAILED, "a git-lfs pointer in place of the file: its weights were never fetched")
    if len(head) < 8:
        return Missing(Reason.FAILED, "too short for a safetensors file")
    (length,) = struct.unpack("<Q", head)
    if not 2 <= length <= HEADER_LIMIT:
        return Missing(Reason.FAILED, f"no safetensors file: its header would have {length} bytes")
    text = stream.read(length)
    if len(text) < length:
        return Missing(Reason.FAILED, "the file ends inside its header")
    try:
        _add(json.loads(text), found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Missing(Reason.FAILED, "no header of a safetensors file")
    return None


def _add(entries: Mapping[str, Mapping[str, Any]], found: Found) -> None:
    """One pass, as large checkpoints have a hundred thousand tensors. Raises for what is no header."""
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        if not (type(begin) is type(end) is int and 0 <= begin <= end < LARGEST and {*map(type, shape)} <= {int}):
            raise ValueError(name)
        before, experts, after = name.partition(".experts.")
        if experts:
            number, _, part = after.partition(".")
            name = f"{before}.experts.*.{part}" if number.isdigit() else name
        sums = found.setdefault((name, str(entry["dtype"]), shape), [0, 0])
        sums[0] += 1
        sums[1] += end - begin


def tensors(host: Host, folder: str) -> Parsed[tuple[Tensor, ...] | Missing]:
    """All tensors of a checkpoint, those that its index lists where it has one; one unread file leaves all unknown."""
    source = f"file:{folder}"
    names = weight_files(host, folder)
    if isinstance(names, Missing):
        return Parsed(names, source, {"": names.detail or names.reason.value})
    found: Found = {}
    for name in names:
        answer = host.open(f"{folder}/{name}")
        if isinstance(answer.value, Missing):
            what = answer.value
            return Parsed(Missing(what.reason, f"{name}: {what.detail}"), answer.source, {"": what.reason.value})
        with answer.value as stream:
            wrong = header(stream, found)
        if wrong is not None:
            return Parsed(Missing(wrong.reason, f"{name}: {wrong.detail}"), answer.source, {"": wrong.detail})
    value = tuple(Tensor(*key, count, size) for key, (count, size) in found.items())
    return Parsed(value, source, {"": f"{len(names)} weight files, {sum(tensor.count for tensor in value)} tensors"})


def weight_files(host: Host, folder: str) -> tuple[str, ...] | Missing:
    """By the index, else by the listing."""
    index = host.read(f"{folder}/{INDEX}").value
    if not isinstance(index, Missing):
        return _listed_in(index)
    if index.reason is not Reason.ABSENT:
        return index
    names = host.list(folder).value
    if isinstance(names, Missing):
        return names
    files = tuple(name for name in names if name.endswith(".safetensors"))
    if not files:
        return Missing(Reason.ABSENT, f"no safetensors file in {folder}")
    return files if len(files) <= FILE_LIMIT else Missing(Reason.FAILED, f"more than {FILE_LIMIT} weight files")


def _listed_in(index: bytes) -> tuple[str, ...] | Missing:
    try:
        files = tuple(sorted(set(json.loads(index)["weight_map"].values())))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Missing(Reason.FAILED, f"{INDEX} has no weight_map")
    if not files or len(files) > FILE_LIMIT or not all(_is_plain(name) for name in files):
        return Missing(Reason.FAILED, f"{INDEX} names no weight files")
    return files


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[\w][\w.+-]{0,200}\.safetensors", name) is not None
