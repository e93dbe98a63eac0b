"""The reader and the loader: real libraries of this machine against ldd, readelf and pyelftools, then spoilt ones."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_cann import compiled, needs_gcc

from ascend_doctor.host.elf.loader import AARCH64, MACHINE_OF, X86_64, Files, loader_of, read_cache
from ascend_doctor.host.elf.process import Opening, Process
from ascend_doctor.host.elf.reader import BytesSource, Elf, ElfError, FileSource, Source

MACHINE = MACHINE_OF.get(os.uname().machine, 0)
REAL = sorted(
    path
    for path in glob.glob("/usr/lib/*-linux-gnu/lib*.so.*") + glob.glob("/usr/lib64/lib*.so.*")
    if not os.path.islink(path)
)[::12][:25]
EVERY_QUESTION = ("soname", "needed", "rpath", "runpath", "versions", "version_needs", "refusal", "interpreter")
needs_ldd = pytest.mark.skipif(shutil.which("ldd") is None or not REAL, reason="no ldd, or no libraries to ask it for")


def opening(path: Path | str, library_path: str = "", root: str = "/") -> Opening:
    process = Process(loader_of(Files(root), MACHINE, library_path, ""))
    try:
        return process.open(str(path))
    finally:
        process.close()


@needs_ldd
def test_the_libraries_of_this_machine_link_as_ldd_says() -> None:
    for path in REAL:
        said = subprocess.run(["ldd", "-r", path], capture_output=True, text=True, check=False).stdout
        found = opening(path)
        assert {os.path.realpath(p) for p in re.findall(r"=> (/\S+) \(", said)} <= {
            os.path.realpath(library.path) for library in found.scope
        }, path
        assert {fault.library for fault in found.faults} == set(re.findall(r"(\S+) => not found", said)), path
        missing = {symbol.name.decode() for undefined in found.undefined for symbol in undefined.symbols}
        assert missing == set(re.findall(r"undefined symbol: ([^\s,]+)", said)), path


@pytest.mark.skipif(not REAL, reason="no libraries in the usual folders")
def test_headers_and_symbols_are_those_that_pyelftools_reads() -> None:
    elftools = pytest.importorskip("elftools.elf.elffile")
    for path in sorted(REAL, key=os.path.getsize)[:5]:
        data = Path(path).read_bytes()
        elf = Elf(BytesSource(data), path)
        with open(path, "rb") as stream:
            other = elftools.ELFFile(stream)
            tags = list(other.get_section_by_name(".dynamic").iter_tags())
            assert elf.needed == tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED")
            assert elf.soname == next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), "")
            symbols = list(other.get_section_by_name(".dynsym").iter_symbols())
        undefined = [
            s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF" and s.entry.st_info.bind == "STB_GLOBAL"
        ]
        assert [symbol.name.decode() for symbol in elf.undefined()] == [name for name in undefined if name]


@pytest.mark.skipif(shutil.which("ldconfig") is None or not os.path.exists("/etc/ld.so.cache"), reason="no cache")
def test_the_cache_holds_what_ldconfig_prints() -> None:
    said = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    word = {X86_64: "x86-64", AARCH64: "AArch64"}.get(MACHINE, "?")
    wanted: dict[str, str] = {}
    for name, kind, path in re.findall(r"^\s+(\S+) \((.*?)\) => (\S+)$", said, re.M):
        if word in kind and "hwcap" not in kind:
            wanted.setdefault(name, path)
    assert read_cache(Path("/etc/ld.so.cache").read_bytes(), MACHINE) == wanted


@given(st.binary(max_size=300))
def test_any_bytes_are_a_cache_perhaps_an_empty_one(data: bytes) -> None:
    assert isinstance(read_cache(data, X86_64), dict)
    assert isinstance(read_cache(b"glibc-ld.so.cache1.1" + data, X86_64), dict)


# Where the loader looks


def really_loaded(path: Path, name: str, library_path: str) -> str:
    """Which file the loader of this machine takes."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, capture_output=True, text=True, check=True
    )
    return next(line.split()[-1] for line in done.stdout.splitlines() if line.endswith(f"/{name}"))


@needs_gcc
@pytest.mark.parametrize("dtags", ["--disable-new-dtags", "--enable-new-dtags"])
def test_rpath_comes_before_the_environment_and_runpath_after(tmp_path: Path, dtags: str) -> None:
    for folder in ("beside", "environment"):
        (tmp_path / folder).mkdir()
        compiled(tmp_path / folder / "libinner.so", "int inner(void) { return 1; }")
    outer = compiled(
        tmp_path / "libouter.so",
        "int inner(void); int outer(void) { return inner(); }",
        [tmp_path / "beside" / "libinner.so"],
        ["-Wl,-rpath,$ORIGIN/beside", f"-Wl,{dtags}"],
    )
    wanted = really_loaded(outer, "libinner.so", str(tmp_path / "environment"))
    found = opening(outer, str(tmp_path / "environment"))
    assert found.first_error == ""
    assert wanted in [library.path for library in found.new]


@needs_gcc
def test_the_rpath_of_the_one_that_brought_a_library_in_serves_it_too(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    inner = compiled(tmp_path / "deep" / "libinner.so", "int inner(void) { return 1; }")
    middle = compiled(tmp_path / "libmiddle.so", "int inner(void); int middle(void) { return inner(); }", [inner])
    outer = compiled(
        tmp_path / "libouter.so",
        "int middle(void); int outer(void) { return middle(); }",
        [middle],
        ["-Wl,-rpath,$ORIGIN:$ORIGIN/deep", "-Wl,--disable-new-dtags"],
    )
    assert opening(outer).first_error == ""
    assert really_loaded(outer, "libinner.so", "") == str(inner)


@needs_gcc
def test_a_weak_symbol_may_stay_undefined_and_a_strong_one_may_not(tmp_path: Path) -> None:
    weak = "int gone(void) __attribute__((weak)); int outer(void) { return gone ? gone() : 0; }"
    assert opening(compiled(tmp_path / "libweak.so", weak)).first_error == ""
    strong = opening(compiled(tmp_path / "libstrong.so", "int gone(void); int outer(void) { return gone(); }"))
    assert strong.first_error == f"{tmp_path}/libstrong.so: undefined symbol: gone"


@needs_gcc
def test_a_version_that_is_not_defined_is_named_as_the_loader_names_it(tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text("NEW_2.0 { global: inner; local: *; };\n", encoding="utf-8")
    (tmp_path / "new").mkdir()
    new = compiled(
        tmp_path / "new" / "libinner.so", "int inner(void) { return 1; }", (), [f"-Wl,--version-script={script}"]
    )
    outer = compiled(tmp_path / "libouter.so", "int inner(void); int outer(void) { return inner(); }", [new])
    (tmp_path / "old").mkdir()
    script.write_text("OLD_1.0 { global: inner; local: *; };\n", encoding="utf-8")
    old = compiled(
        tmp_path / "old" / "libinner.so", "int inner(void) { return 1; }", (), [f"-Wl,--version-script={script}"]
    )
    assert opening(outer, str(new.parent)).first_error == ""
    wanted = f"{old}: version `NEW_2.0' not found (required by {outer})"
    assert opening(outer, str(old.parent)).first_error == wanted
    with pytest.raises(subprocess.CalledProcessError) as raised:
        really_loaded(outer, "libinner.so", str(old.parent))
    assert wanted in raised.value.stderr


@needs_gcc
def test_an_old_hash_table_is_read_too(tmp_path: Path) -> None:
    inner = compiled(tmp_path / "libinner.so", "int inner(void) { return 1; }", (), ["-Wl,--hash-style=sysv"])
    outer = compiled(tmp_path / "libouter.so", "int inner(void); int outer(void) { return inner(); }", [inner])
    assert opening(outer, str(tmp_path)).first_error == ""


@needs_gcc
def test_below_another_root_links_are_followed_inside_it(tmp_path: Path) -> None:
    folder = tmp_path / "opt" / "real"
    folder.mkdir(parents=True)
    inner = compiled(folder / "libinner.so", "int inner(void) { return 1; }", (), ["-nostdlib"])
    compiled(tmp_path / "libouter.so", "int inner(void); int outer(void) { return inner(); }", [inner], ["-nostdlib"])
    (tmp_path / "link").symlink_to("/opt/real")
    found = opening("/libouter.so", "/link", root=str(tmp_path))
    assert found.first_error == ""
    assert [library.path for library in found.new] == ["/libouter.so", "/link/libinner.so"]


# Files that are no libraries


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source = '#include <stdio.h>\nint outer(void) { return puts("aclInit"); }\nint other;\n'
    return compiled(tmp_path_factory.mktemp("library") / "libouter.so", source).read_bytes()


def ask_everything(data: bytes) -> str:
    """Why it was refused; empty where it was read: the same from memory and from a file."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        kind = kind_of(FileSource(file.fileno()))
    assert kind == kind_of(BytesSource(data))
    return kind


def kind_of(source: Source) -> str:
    try:
        elf = Elf(source, "/some/lib.so")
        for question in EVERY_QUESTION:
            getattr(elf, question)
        list(elf.undefined())
        elf.defines(b"outer", 0x0F5A3C1D)
        elf.first_relocated(frozenset(range(50)))
        list(elf.constant_strings())
    except ElfError as error:
        return error.kind
    return ""


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_library_with_wrong_bytes_is_read_or_refused(library: bytes, data: st.DataObject) -> None:
    spoilt = bytearray(library)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.one_of(st.integers(0, 0x400), st.integers(0, len(spoilt) - 9)))
        new = data.draw(
            st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\xff" * 4]))
        )
        spoilt[at : at + len(new)] = new
    ask_everything(bytes(spoilt))


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1))
def test_a_library_cut_anywhere_is_read_or_refused(library: bytes, share: float) -> None:
    ask_everything(library[: int(len(library) * share)])


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_with_a_kind(data: bytes) -> None:
    assert ask_everything(data)
    ask_everything(b"\x7fELF\x02\x01\x01\0" + data)


def test_a_file_of_four_gigabytes_of_nothing_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "libhuge.so"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    assert opening(path).first_error == f"{path}: invalid ELF header"


@needs_gcc
def test_a_library_with_four_gigabytes_behind_it_is_read(tmp_path: Path) -> None:
    path = compiled(tmp_path / "libhuge.so", "int outer(void) { return 1; }")
    with path.open("r+b") as file:
        file.truncate(4 << 30)
    assert opening(path).first_error == ""


def test_what_is_no_file_gives_a_fault_and_the_words_of_the_loader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "libpipe.so")
    (tmp_path / "libfolder.so").mkdir()
    (tmp_path / "libloop.so").symlink_to("libloop.so")
    (tmp_path / "libgone.so").symlink_to("/nowhere/libgone.so")
    kinds = {name: [fault.kind for fault in opening(tmp_path / name).faults] for name in sorted(os.listdir(tmp_path))}
    assert kinds == {
        "libfolder.so": ["directory"],
        "libgone.so": ["dangling", "not_found"],
        "libloop.so": ["loop", "not_found"],
        "libpipe.so": ["unreadable"],
    }
    for name in ("libfolder.so", "libgone.so", "libloop.so"):
        code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        said = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert opening(tmp_path / name).first_error in said.stderr


@pytest.mark.parametrize("path", ["/a\0b", "", "relative/lib.so", "/proc/self/mem", "/dev/zero", "/nowhere/x.so"])
def test_any_path_can_be_asked_for(path: str) -> None:
    assert opening(path or "x").first_error
