"""What the weight files of a checkpoint hold, from their headers alone: names, types, shapes and bytes of tensors.

Source: the format's own description, https://github.com/huggingface/safetensors (8 bytes of length, JSON, data).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from typing import BinaryIO

from ascend_doctor.host import Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 100_000_000
"""Bytes: safetensors itself refuses a longer header."""
FILE_LIMIT = 4096
"""Weight files of one checkpoint."""
POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class Tensor:
    """``bytes``: of its data in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


def header(stream: BinaryIO) -> tuple[Tensor, ...] | Missing:
    """The tensors that the header at the begin of a file names; the data are not read."""
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
        entries = json.loads(text)
        return tuple(_tensor(name, entry) for name, entry in entries.items() if name != "__metadata__")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Missing(Reason.FAILED, "no header of a safetensors file")


def _tensor(name: str, entry: Mapping[str, object]) -> Tensor:
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list):
        raise TypeError(name)
    begin, end = offsets
    numbers = (begin, end, *shape)
    if not all(isinstance(number, int) and 0 <= number < 1 << 60 for number in numbers) or end < begin:
        raise ValueError(name)
    return Tensor(name, str(entry["dtype"]), tuple(shape), end - begin)


def tensors(host: Host, folder: str) -> Parsed[tuple[Tensor, ...]]:
    """All tensors of a checkpoint, those that its index lists where it has one; one unread file leaves all unknown."""
    source = f"file:{folder}"
    names = weight_files(host, folder)
    if isinstance(names, Missing):
        return Parsed(names, source, {"": names.detail or names.reason.value})
    found: list[Tensor] = []
    for name in names:
        answer = host.open(f"{folder}/{name}")
        if isinstance(answer.value, Missing):
            what = answer.value
            return Parsed(Missing(what.reason, f"{name}: {what.detail}"), answer.source, {"": what.reason.value})
        with answer.value as stream:
            part = header(stream)
        if isinstance(part, Missing):
            return Parsed(Missing(part.reason, f"{name}: {part.detail}"), answer.source, {"": part.detail})
        found.extend(part)
    return Parsed(tuple(found), source, {"": f"{len(names)} weight files, {len(found)} tensors"})


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
