from __future__ import annotations

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive import library_path as rows
from ascend_doctor.facts import cann, driver, env, library_path
from ascend_doctor.facts.library_path import (
    Folder,
    LibraryPath,
    cached_libraries,
    collect,
    configured_folders,
    form_of,
    normalised,
    split_path,
)
from ascend_doctor.host import Missing, Reason, Shown

CANN = "/usr/local/Ascend/cann-8.5.0"
DRIVER = "/usr/local/Ascend/driver/lib64"
HAL = f"{DRIVER}/driver/libascend_hal.so"
CACHE_1_1 = b"glibc-ld.so.cache1.1\x02\0\0\0"
CACHE_1_7 = b"ld.so-1.7.0\0\x05\0\0\0"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("/a/lib64:/b//lib/", [("/a/lib64", "absolute", "/a/lib64"), ("/b//lib/", "absolute", "/b/lib")]),
        ("/a;/b", [("/a", "absolute", "/a"), ("/b", "absolute", "/b")]),  # ld.so(8): colons or semicolons
        ("/a:", [("/a", "absolute", "/a"), ("", "empty", "")]),
        ("~/lib:./lib", [("~/lib", "relative", "~/lib"), ("./lib", "relative", "lib")]),
        ("$ORIGIN/../lib", [("$ORIGIN/../lib", "token", "$ORIGIN/../lib")]),
        ("", []),
    ],
)
def test_the_variable_is_split_as_the_loader_does(text: str, entries: list[tuple[str, str, str]]) -> None:
    assert split_path(text).value == tuple(entries)


@pytest.mark.parametrize("mark", [CACHE_1_1, CACHE_1_7])
def test_the_cache_names_the_libraries_that_matter(mark: bytes) -> None:
    strings = b"\0".join([b"libc.so.6", b"/lib64/libc.so.6", b"libascend_hal.so", HAL.encode(), b""])
    assert cached_libraries(mark + strings).value == (HAL,)


def test_another_version_of_a_library_is_another_library() -> None:
    assert cached_libraries(CACHE_1_1 + b"/lib64/libascend_hal.so.1\0").value == ()


def test_what_does_not_begin_like_a_cache_is_none() -> None:
    assert cached_libraries(b"\x7fELF\0/x/libascend_hal.so\0").value == Missing(
        Reason.FAILED, "does not begin like a loader cache"
    )


def test_comments_and_includes_of_the_configuration_are_no_folders() -> None:
    text = b"include ld.so.conf.d/*.conf\n# /old\n/usr/local/Ascend/driver/lib64/ # driver\n\xff\n"
    assert configured_folders(text) == (DRIVER,)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_cache_or_missing(data: bytes) -> None:
    for prefix in (b"", CACHE_1_1):
        assert isinstance(cached_libraries(prefix + data), Shown)
    assert isinstance(configured_folders(data), tuple)


@given(st.text(max_size=80))
def test_any_text_has_a_form_and_a_path(text: str) -> None:
    assert form_of(text) in ("absolute", "relative", "empty", "token")
    assert "//" not in normalised(text)


def path_of(name: str, **env_values: str) -> LibraryPath:
    return collect(host(name, set={"env": env_values})).facts


def entries_of(path: LibraryPath) -> tuple[Folder, ...]:
    assert not isinstance(path.entries, Missing)
    return path.entries


def test_a_folder_shows_what_it_holds_and_where_it_really_is() -> None:
    first, second = entries_of(path_of("a2-healthy", LD_LIBRARY_PATH=f"/usr/local/Ascend/cann/lib64:{CANN}/devlib"))
    assert first.real_path == f"{CANN}/lib64"
    assert "libhccl.so" in first.libraries  # type: ignore[operator]
    assert (first.stub, second.stub) == (False, True)


def test_a_link_into_a_stub_folder_is_a_stub_folder() -> None:
    links = {"entries": [{"path": "/opt/lib", "type": "link", "target": f"{CANN}/devlib"}]}
    facts = collect(host("a2-healthy", set={**links, "env": {"LD_LIBRARY_PATH": "/opt/lib"}})).facts
    assert entries_of(facts)[0].stub


def test_links_that_turn_in_a_circle_end() -> None:
    links = [{"path": "/a", "type": "link", "target": "/b"}, {"path": "/b", "type": "link", "target": "/a"}]
    facts = collect(host("a2-healthy", set={"entries": links, "env": {"LD_LIBRARY_PATH": "/a"}})).facts
    assert isinstance(entries_of(facts)[0].real_path, Missing)


def test_a_relative_entry_is_not_looked_at() -> None:
    assert entries_of(path_of("a2-healthy", LD_LIBRARY_PATH="lib"))[0].type == Missing(
        Reason.UNSUPPORTED, "lib depends on the process that reads it", "library_path.entries[0].type"
    )


def test_a_folder_that_nobody_may_look_at_is_not_gone() -> None:
    hidden = host(
        "a2-healthy", set={"env": {"LD_LIBRARY_PATH": f"{CANN}/lib64"}, "missing": {f"{CANN}/lib64": "denied"}}
    )
    row = rows_of(rows.gone, hidden)[0]
    assert isinstance(row.count, Missing)
    assert row.count.reason is Reason.DENIED


def test_a_configuration_that_only_root_may_read_is_denied_as_a_whole() -> None:
    configured = path_of("a2-nonroot-healthy").configured
    assert isinstance(configured, Missing)
    assert configured.reason is Reason.DENIED


def rows_of(function, on):  # type: ignore[no-untyped-def]
    return function(library_path.collect(on).facts, cann.collect(on).facts, driver.collect(on).facts)


def on(value: str | None, name: str = "a2-healthy", **changes):  # type: ignore[no-untyped-def]
    return host(name, set={**changes, "env": {"LD_LIBRARY_PATH": value}})


DRIVERS = ":".join([DRIVER, f"{DRIVER}/common", f"{DRIVER}/driver"])


@pytest.mark.parametrize(
    ("value", "corrected"),
    [
        (f"{CANN}/lib64:{DRIVERS}", f"{CANN}/lib64:{DRIVERS}"),  # nothing to correct
        (f"{CANN}/lib64", f"{CANN}/lib64:{DRIVERS}"),  # the driver's folders at the end
        (f"{CANN}/devlib:{CANN}/lib64", f"{CANN}/lib64:{DRIVERS}"),  # stubs are of no use beside a driver
        (f":lib:/gone:{CANN}/lib64/:/usr/local/Ascend/cann/lib64:{DRIVERS}", f"{CANN}/lib64:{DRIVERS}"),
        (f"{DRIVER}/common", f"{DRIVER}/common:{DRIVER}:{DRIVER}/driver"),
        (None, DRIVERS),
    ],
)
def test_the_corrected_value_has_each_folder_once_in_the_right_order(value: str | None, corrected: str) -> None:
    host_without_cache = on(value, missing={"/etc/ld.so.cache": "absent"})
    assert rows_of(rows.corrected, host_without_cache) == corrected


def test_without_a_driver_stubs_stay_behind_the_rest() -> None:
    gone = {"/usr/local/Ascend/driver": "absent", "/etc/ascend_install.info": "absent", "/etc/ld.so.cache": "absent"}
    value = rows_of(rows.corrected, on(f"{CANN}/devlib:{CANN}/lib64", missing=gone))
    assert value == f"{CANN}/lib64:{CANN}/devlib"


@given(
    st.lists(st.sampled_from([f"{CANN}/lib64", f"{CANN}/devlib", "/gone", "lib", "", *DRIVERS.split(":")]), max_size=6)
)
def test_a_corrected_value_has_nothing_left_to_correct(entries: list[str]) -> None:
    corrected = rows_of(rows.corrected, on(":".join(entries)))
    again = on(corrected)
    assert rows_of(rows.corrected, again) == corrected
    for question in (rows.gone, rows.repeated, rows.movable, rows.stubs):
        assert rows_of(question, again)[0].count == 0


def test_a_stub_hides_a_driver_that_only_the_cache_knows() -> None:
    cache = {"/etc/ld.so.cache": (CACHE_1_1 + HAL.encode() + b"\0").decode()}
    row = rows_of(rows.stubs, on(f"{CANN}/lib64:{CANN}/devlib", files=cache))[0]
    assert row.which == f"{CANN}/devlib"


def test_a_stub_where_there_is_nothing_real_hides_nothing() -> None:
    row = rows_of(rows.stubs, on(f"{CANN}/devlib", missing={"/etc/ld.so.cache": "absent"}))[0]
    assert row.count == 0


def test_a_stub_is_no_driver() -> None:
    row = rows_of(rows.driver_libraries, on(f"{CANN}/devlib", missing={"/etc/ld.so.cache": "absent"}))[0]
    assert row.found is False


def test_a_home_in_one_installation_and_a_path_in_another_are_two() -> None:
    both = host("a2-toolkit-beside-nnae", set={"env": {"LD_LIBRARY_PATH": "/usr/local/Ascend/nnae/8.0.0/lib64"}})
    assert rows_of(rows.installations, both)[0].count == 2


def test_two_installations_side_by_side_are_one_where_one_is_selected() -> None:
    both = host("a2-toolkit-beside-nnae", set={"env": {"LD_LIBRARY_PATH": f"{CANN}/lib64"}})
    assert rows_of(rows.installations, both)[0].count == 1


def test_a_folder_of_cann_in_the_path_is_a_sourced_environment() -> None:
    homes = dict.fromkeys(("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"))
    bare = host("a2-healthy", set={"env": {**homes, "LD_LIBRARY_PATH": f"{CANN}/lib64"}})
    facts = library_path.collect(bare).facts, cann.collect(bare).facts, env.collect(bare).facts
    row = rows.sourcing(*facts)[0]  # type: ignore[index]
    assert (row.sourced, row.operators) == (True, False)
