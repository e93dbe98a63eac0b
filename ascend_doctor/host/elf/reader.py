"""One ELF file: what it needs, defines and leaves undefined.

Read with pread in small pieces and never mapped: a file that shrinks meanwhile, or a failing disk, would end a process
that has mapped it with SIGBUS, which is the very fault that is looked for here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

from ascend_doctor.records import dataclass

MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
HEADER_BYTES = 64
LONGEST_NAME = 1 << 16
MOST_SYMBOLS = 1 << 20
MOST_RELOCATIONS = 1 << 21
MOST_NEEDED = 4096
MOST_VERSIONS = 65536
WINDOW_BYTES = 4 << 20
"""A string table up to this size is read at once when all of its undefined names are wanted."""

_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_NULL, _NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _STRSZ, _SONAME = 0, 1, 4, 5, 6, 7, 8, 10, 14
_PLTRELSZ, _RPATH, _JMPREL, _RUNPATH = 2, 15, 23, 29
_GNU_HASH, _FLAGS_1, _RELACOUNT, _VERSYM = 0x6FFFFEF5, 0x6FFFFFFB, 0x6FFFFFF9, 0x6FFFFFF0
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_NODEFLIB, _PIE = 0x800, 0x08000000
_SHT_DYNSYM, _SHF_STRINGS = 11, 0x20

_WORD, _HALF, _CHAIN = struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<8I")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_WEAK = 2
_BINDINGS = frozenset({1, _WEAK, 10})
_TYPES = frozenset({0, 1, 2, 5, 6, 10})
_TLS, _ABSOLUTE = 6, 0xFFF1
_HIDDEN = 0x8000


class Source(Protocol):
    """The bytes of a file."""

    size: int

    def at(self, offset: int, count: int) -> bytes:
        """Fewer bytes where the file ends. Raises OSError."""


class FileSource:
    """A regular file that is open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        state = os.fstat(descriptor)
        self.size = state.st_size
        self.identity = (state.st_dev, state.st_ino)

    def at(self, offset: int, count: int) -> bytes:
        if offset + count > self.size:  # headers may name any number, and pread makes room for all of it
            count = max(self.size - offset, 0)
        return os.pread(self._descriptor, count, offset) if count else b""

    def close(self) -> None:
        os.close(self._descriptor)


class BytesSource:
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def at(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]


class ElfError(Exception):
    """Why a file cannot be loaded. ``kind`` is one word for it, ``text`` what the loader says ("" where it dies)."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text or kind)
        self.kind, self.text = kind, text


class ForeignError(ElfError):
    """A file for another machine or word size: the loader goes on to the next folder."""


@dataclass(frozen=True)
class Needed:
    """A version that a file wants of one of its libraries."""

    file: str
    version: str
    weak: bool


class Symbol(NamedTuple):
    """An undefined symbol; ``hash`` is its GNU hash, ``version`` empty where it has none."""

    number: int
    name: bytes
    hash: int
    version: str


class Elf:
    """A 64-bit little-endian file. The constructor and every question may raise ElfError and OSError."""

    def __init__(self, source: Source, path: str, machine: int = 0) -> None:
        """``machine``: that of the process; 0 takes any."""
        self.source, self.path = source, path
        header = source.at(0, HEADER_BYTES)
        self.type, self.machine = _identified(header, machine)
        (program_headers,) = struct.unpack_from("<Q", header, 32)
        entry_size, count = struct.unpack_from("<HH", header, 54)
        self._sections_at, self._sections_count = _sections(header)
        if entry_size != 56:
            raise ElfError("unloadable", "ELF file's phentsize not the expected size")
        table = source.at(program_headers, 56 * count)
        if len(table) < 56 * count:
            raise ElfError("truncated", "cannot read file data")
        self._loads: list[tuple[int, int, int]] = []
        self.interpreter = ""
        dynamic = None
        for kind, _, offset, address, _, file_size, _, _ in struct.iter_unpack("<IIQQQQQQ", table):
            if kind == _PT_LOAD:
                self._loads.append((address, offset, file_size))
            elif kind == _PT_DYNAMIC:
                dynamic = (offset, file_size)
            elif kind == _PT_INTERP:
                self.interpreter = source.at(offset, min(file_size, 4096)).split(b"\0")[0].decode(errors="replace")
        if not self._loads:
            raise ElfError("unloadable", "object file has no loadable segments")
        if any(offset + size > source.size for _, offset, size in self._loads):
            raise ElfError("truncated", "")
        self._tags: dict[int, int] = {}
        self._needed: list[int] = []
        if dynamic:
            self._read_dynamic(*dynamic)
        elif self.type == _ET_DYN:
            raise ElfError("unloadable", "object file has no dynamic section")

    def _read_dynamic(self, offset: int, size: int) -> None:
        for tag, value in struct.iter_unpack("<QQ", self._whole(offset, min(size, 1 << 20) & ~15)):
            if tag == _NULL:
                break
            if tag == _NEEDED:
                self._needed.append(value)
            else:
                self._tags.setdefault(tag, value)
        if len(self._needed) > MOST_NEEDED:
            raise ElfError("damaged", "")

    @property
    def refusal(self) -> str:
        """What dlopen says of an executable; empty for a library."""
        if self.type == _ET_EXEC:
            return "cannot dynamically load executable"
        if self._tags.get(_FLAGS_1, 0) & _PIE:
            return "cannot dynamically load position-independent executable"
        return ""

    @cached_property
    def soname(self) -> str:
        return self._string(self._tags[_SONAME]) if _SONAME in self._tags else ""

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The libraries that it names, in order."""
        return tuple(self._string(offset) for offset in self._needed)

    @cached_property
    def rpath(self) -> str:
        """DT_RPATH as written; ignored, so empty, where there is a DT_RUNPATH."""
        return self._string(self._tags[_RPATH]) if _RPATH in self._tags and _RUNPATH not in self._tags else ""

    @cached_property
    def runpath(self) -> str | None:
        """DT_RUNPATH as written; None where there is none."""
        return self._string(self._tags[_RUNPATH]) if _RUNPATH in self._tags else None

    @property
    def no_default_folders(self) -> bool:
        return bool(self._tags.get(_FLAGS_1, 0) & _NODEFLIB)

    # Versions

    @cached_property
    def version_needs(self) -> dict[int, Needed]:
        """By the index that .gnu.version uses."""
        found: dict[int, Needed] = {}
        if _VERNEED not in self._tags:
            return found
        at = self._offset(self._tags[_VERNEED])
        for _ in range(min(self._tags.get(_VERNEEDNUM, 0), MOST_NEEDED)):
            _, count, file, first, following = struct.unpack("<HHIII", self._whole(at, 16))
            name, entry = self._string(file), at + first
            for _ in range(count):
                _, flags, index, version, further = struct.unpack("<IHHII", self._whole(entry, 16))
                found[index & 0x7FFF] = Needed(name, self._string(version), bool(flags & 2))
                entry += further
                if not further or len(found) > MOST_VERSIONS:
                    break
            at += following
            if not following:
                break
        return found

    @cached_property
    def versions(self) -> dict[int, str]:
        """The versions that it defines, by index; the first is the name of the file itself."""
        found: dict[int, str] = {}
        if _VERDEF not in self._tags:
            return found
        at = self._offset(self._tags[_VERDEF])
        for _ in range(min(self._tags.get(_VERDEFNUM, 0), MOST_VERSIONS)):
            _, flags, index, _, _, first, following = struct.unpack("<HHHHIII", self._whole(at, 20))
            name, _ = struct.unpack("<II", self._whole(at + first, 8))
            if not flags & 1:
                found[index & 0x7FFF] = self._string(name)
            at += following
            if not following:
                break
        return found

    @property
    def defines_versions(self) -> bool:
        return _VERDEF in self._tags

    # Symbols

    def undefined(self) -> Iterator[Symbol]:
        """The symbols that others have to define; weak ones may stay undefined and are left out."""
        count = self._symbol_count()
        if not count:
            return
        symbols = self._whole(self._symbols_at, count * _SYMBOL.size)
        versions = b""
        if _VERSYM in self._tags and self.version_needs:
            versions = self._whole(self._versions_at, count * 2)
        strings = self._string_window()
        wanted = {index: need.version for index, need in self.version_needs.items()}
        for number, (name_at, info, _, section, _, _) in enumerate(_SYMBOL.iter_unpack(symbols)):
            if section or not name_at or info >> 4 not in _BINDINGS or info >> 4 == _WEAK:
                continue
            name = self._bytes(name_at, strings)
            index = versions[2 * number] | (versions[2 * number + 1] & 0x7F) << 8 if versions else 0
            yield Symbol(number, name, gnu_hash(name), wanted.get(index, ""))

    def defines(self, name: bytes, hashed: int, version: str = "") -> bool:
        """Whether a reference to the symbol, of that version where it asks for one, finds it here."""
        if _GNU_HASH not in self._tags:
            return _HASH in self._tags and any(self._is(index, name, version) for index in self._old_chain(name))
        table, buckets, first, filter_words, shift, buckets_at, chains_at = self._hash_table
        (word,) = _WORD.unpack_from(table, (hashed >> 6) % filter_words * 8)
        if not word >> (hashed & 63) & word >> (hashed >> shift & 63) & 1 or not buckets:
            return False
        (index,) = _HALF.unpack_from(table, buckets_at + hashed % buckets * 4)
        if index < first:
            return False
        at, end = chains_at + (index - first) * 4, chains_at + 4 * MOST_SYMBOLS
        while at < end:
            chain = self.source.at(at, _CHAIN.size)
            if len(chain) < _CHAIN.size:
                chain += b"\1\0\0\0" * _CHAIN.size  # the file ends, and so does the chain
            for value in _CHAIN.unpack_from(chain):
                if value | 1 == hashed | 1 and self._is(index, name, version):
                    return True
                if value & 1:
                    return False
                index += 1
            at += _CHAIN.size
        raise ElfError("damaged", "")

    def _is(self, index: int, name: bytes, version: str) -> bool:
        at = self._symbols_at + index * _SYMBOL.size
        name_at, info, _, section, value, _ = _SYMBOL.unpack(self._whole(at, _SYMBOL.size))
        kind = info & 15
        if not section or info >> 4 not in _BINDINGS or kind not in _TYPES:
            return False
        if not value and section != _ABSOLUTE and kind != _TLS:
            return False
        text = self.source.at(self._strings_at + name_at, len(name) + 1)
        return text == name + b"\0" and self._has_version(index, version)

    def _has_version(self, index: int, wanted: str) -> bool:
        """As glibc's check_match: unversioned definitions serve everyone, hidden ones only who asks for them."""
        if _VERSYM not in self._tags or not self.defines_versions:
            return True
        (number,) = struct.unpack("<H", self._whole(self._versions_at + 2 * index, 2))
        if not wanted:
            return not number & _HIDDEN or number & 0x7FFF < 3
        name = self.versions.get(number & 0x7FFF, "")
        return name == wanted or (not name and not number & _HIDDEN)

    @cached_property
    def _hash_table(self) -> tuple[bytes, int, int, int, int, int, int]:
        """Filter and buckets of .gnu.hash, its numbers, and where the chains are."""
        at = self._offset(self._tags[_GNU_HASH])
        buckets, first, filter_words, shift = struct.unpack("<IIII", self._whole(at, 16))
        if not filter_words or max(buckets, filter_words) > MOST_SYMBOLS:
            raise ElfError("damaged", "")
        size = filter_words * 8 + buckets * 4
        return self._whole(at + 16, size), buckets, first, filter_words, shift & 63, filter_words * 8, at + 16 + size

    def _old_chain(self, name: bytes) -> Iterator[int]:
        at = self._offset(self._tags[_HASH])
        buckets, count = struct.unpack("<II", self._whole(at, 8))
        if not buckets:
            return
        (index,) = struct.unpack("<I", self._whole(at + 8 + sysv_hash(name) % buckets * 4, 4))
        for _ in range(min(count, MOST_SYMBOLS)):
            if not index:
                return
            yield index
            (index,) = struct.unpack("<I", self._whole(at + 8 + (buckets + index) * 4, 4))

    def _symbol_count(self) -> int:
        """The dynamic section does not tell: .gnu.hash counts what is defined; the section header, if there, all."""
        if _SYMTAB not in self._tags or _STRTAB not in self._tags:
            return 0
        counts = [self._section_symbols()]
        if _HASH in self._tags:
            counts.append(struct.unpack("<II", self._whole(self._offset(self._tags[_HASH]), 8))[1])
        if _GNU_HASH in self._tags:
            table, buckets, first, _, _, buckets_at, chains_at = self._hash_table
            last = max(struct.unpack_from(f"<{buckets}I", table, buckets_at), default=0)
            counts.append(first)
            while last >= first:
                (value,) = struct.unpack("<I", self._whole(chains_at + (last - first) * 4, 4))
                last += 1
                if value & 1:
                    counts.append(last)
                    break
        if max(counts) > MOST_SYMBOLS:
            raise ElfError("damaged", "")
        return max(counts)

    def _section_symbols(self) -> int:
        for _, kind, _, address, _, size in self._sections():
            if kind == _SHT_DYNSYM and address == self._tags[_SYMTAB]:
                return size // _SYMBOL.size
        return 0

    def _sections(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(name, type, flags, address, offset, size) of each section; none where the headers are gone."""
        table = self.source.at(self._sections_at, 64 * self._sections_count) if self._sections_at else b""
        for entry in struct.iter_unpack("<IIQQQQIIQQ", table[: len(table) // 64 * 64]):
            yield entry[:6]

    def first_relocated(self, symbols: frozenset[int]) -> list[int]:
        """Which of the symbols the loader looks up, in its order: those that no relocation names it never misses."""
        found: dict[int, None] = {}
        skipped = self._tags.get(_RELACOUNT, 0) * _RELOCATION.size
        for start, size, skip in (
            (self._tags.get(_RELA), self._tags.get(_RELASZ, 0), skipped),
            (self._tags.get(_JMPREL), self._tags.get(_PLTRELSZ, 0), 0),
        ):
            if start is None or size <= skip:
                continue
            at = self._offset(start) + skip
            end = at + min(size - skip, MOST_RELOCATIONS * _RELOCATION.size)
            while at < end:
                part = self._whole(at, min(end - at, 3 << 18) // _RELOCATION.size * _RELOCATION.size)
                if not part:
                    break
                for _, info, _ in _RELOCATION.iter_unpack(part):
                    if info >> 32 in symbols:
                        found[info >> 32] = None
                at += len(part)
        return list(found)

    def constant_strings(self, limit: int = 32 << 20) -> Iterator[bytes]:
        """The read-only data in which a compiler keeps texts, in pieces that begin and end at a text's end."""
        for _, kind, flags, _, offset, size in self._sections():
            writable, code = flags & 1, flags & 4
            if kind != 1 or not flags & 2 or writable or code or not self._holds_texts(offset, size, flags):
                continue
            rest, at, end = b"\0", offset, offset + min(size, limit)
            limit -= end - at
            while at < end:
                part = self.source.at(at, min(end - at, 1 << 20))
                if not part:
                    return
                at += len(part)
                whole, _, tail = (rest + part).rpartition(b"\0")
                yield whole + b"\0"
                rest = b"\0" + tail[-LONGEST_NAME:]

    def _holds_texts(self, offset: int, size: int, flags: int) -> bool:
        """By a sample: exception tables are as large and hold none."""
        if flags & _SHF_STRINGS:
            return True
        sample = self.source.at(offset + size // 2, 4096)
        letters = sum(sample.count(letter) for letter in b"etaoinsr")
        return letters * 8 > len(sample)

    # Places

    def _offset(self, address: int) -> int:
        for start, offset, size in self._loads:
            if start <= address < start + size:
                return address - start + offset
        raise ElfError("damaged", "")

    def _whole(self, offset: int, count: int) -> bytes:
        data = self.source.at(offset, count)
        if len(data) < count:
            raise ElfError("damaged", "")
        return data

    @cached_property
    def _symbols_at(self) -> int:
        return self._offset(self._tags[_SYMTAB])

    @cached_property
    def _versions_at(self) -> int:
        return self._offset(self._tags[_VERSYM])

    @cached_property
    def _strings_at(self) -> int:
        if _STRTAB not in self._tags:
            raise ElfError("damaged", "")
        return self._offset(self._tags[_STRTAB])

    def _string_window(self) -> bytes:
        size = self._tags.get(_STRSZ, 0)
        return self.source.at(self._strings_at, size) if size <= WINDOW_BYTES else b""

    def _string(self, offset: int) -> str:
        return self._bytes(offset, b"").decode(errors="surrogateescape")

    def _bytes(self, offset: int, window: bytes) -> bytes:
        if offset >= self._tags.get(_STRSZ, 0):
            raise ElfError("damaged", "")
        if window:
            end = window.find(b"\0", offset)
            return window[offset:end] if end >= 0 else window[offset:]
        size = 256
        while size <= LONGEST_NAME:
            text = self.source.at(self._strings_at + offset, size)
            end = text.find(b"\0")
            if end >= 0:
                return text[:end]
            if len(text) < size:
                break
            size *= 16
        raise ElfError("damaged", "")


def _identified(header: bytes, expected: int) -> tuple[int, int]:
    """Type and machine of a header, in the order of glibc's open_verify. Raises ElfError."""
    if len(header) < HEADER_BYTES:
        raise ElfError("too_short", "file too short")
    if header[:4] != b"\x7fELF":
        raise ElfError("no_elf", "invalid ELF header")
    if header[4] != 2:
        raise ForeignError("elf32", "wrong ELF class: ELFCLASS32")
    if header[5] != 1:
        raise ElfError("unloadable", "ELF file data encoding not little-endian")
    if header[6] != 1:
        raise ElfError("unloadable", "ELF file version ident does not match current one")
    if header[7] not in (0, 3):
        raise ElfError("unloadable", "ELF file OS ABI invalid")
    if any(header[9:16]):
        raise ElfError("unloadable", "nonzero padding in e_ident")
    kind, machine, version = struct.unpack_from("<HHI", header, 16)
    if version != 1:
        raise ElfError("unloadable", "ELF file version does not match current one")
    if expected and machine != expected:
        raise ForeignError("foreign_machine", f"built for {MACHINES.get(machine, f'machine {machine}')}")
    if kind not in (_ET_EXEC, _ET_DYN):
        raise ElfError("unloadable", "only ET_DYN and ET_EXEC can be loaded")
    return kind, machine


def _sections(header: bytes) -> tuple[int, int]:
    (offset,) = struct.unpack_from("<Q", header, 40)
    entry_size, count = struct.unpack_from("<HH", header, 58)
    return (offset, count) if entry_size == 64 else (0, 0)


def gnu_hash(name: bytes) -> int:
    hashed = 5381
    for byte in name:
        hashed = hashed * 33 + byte & 0xFFFFFFFF
    return hashed


def sysv_hash(name: bytes) -> int:
    hashed = 0
    for byte in name:
        hashed = (hashed << 4) + byte
        hashed = (hashed ^ (hashed & 0xF0000000) >> 24) & 0x0FFFFFFF
    return hashed
