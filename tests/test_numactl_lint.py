"""``numa lint``: what a numactl line really does, checked against numactl itself where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Callable

import jsonschema
import pytest
from click.testing import CliRunner
from hosts import FOLDER, host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.cli.numa import command
from ascend_doctor.derive.cpu_lists import ranges, written
from ascend_doctor.derive.numactl import lines
from ascend_doctor.facts import numa
from ascend_doctor.facts.numa import cpu_set
from ascend_doctor.facts.numactl import Words, line, words
from ascend_doctor.host import Missing
from ascend_doctor.host.live import KnownEnv, LiveHost
from ascend_doctor.paths import data_folder

GUIDE = "numactl --cpunodebind=4,6 --membind=4,6 --physcpubind=96-143"
NUMACTL = shutil.which("numactl")

SCHEMA = jsonschema.Draft202012Validator(json.loads((data_folder("reports") / "schema.json").read_text("utf-8")))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The verb runs on a test host, which may be a delta."""

    def use(name: str, changes: dict[str, Any] | None = None) -> None:
        monkeypatch.setattr("ascend_doctor.cli.numa.chosen_host", lambda *_: host(name, changes))

    return use


def linted(text: str, *more: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(command, ["lint", text, "--format", "json", *more], standalone_mode=False)
    assert done.exception is None, done.exception
    run: dict[str, Any] = json.loads(done.output)
    SCHEMA.validate(run)
    return int(done.return_value), run


def failed(run: dict[str, Any]) -> dict[str, str]:
    return {f["check"]: f["severity"] for f in run["findings"] if f["verdict"] == "fail" and not f["because"]}


def test_the_guides_line_binds_other_cpus_than_it_says(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = linted(GUIDE)
    assert (code, failed(run)) == (1, {"numactl.one-cpu-bind": "error"})
    finding = next(f for f in run["findings"] if f["check"] == "numactl.one-cpu-bind")
    for text in finding["found"].values():
        for part in ("--physcpubind=96-143", "--cpunodebind=4,6", "120-143", "5", "6"):
            assert part in text
    assert "numactl --cpunodebind=4,6 --membind=4,6 COMMAND" in finding["expected"]["en"]
    explained = {f["check"] for f in run["findings"] if f["because"] == "numactl.one-cpu-bind"}
    assert explained == {"numactl.memory-near", "numactl.near-npu"}
    effect = run["numa"]["lines"][0]
    assert (effect["cpus"], effect["nodes"], effect["memory_nodes"]) == ("96-143", "4-5", "4,6")


def test_the_guides_line_is_an_error_on_this_machine_too() -> None:
    code, run = linted(GUIDE)
    assert code == 1
    assert "numactl.one-cpu-bind" in failed(run)


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("numactl --cpunodebind=4,6 --membind=4,6 vllm serve x", 0, {}),
        ("numactl -N4 -m4 vllm serve x --tensor-parallel-size 2", 0, {}),
        ("numactl --physcpubind=96-119,144-167 --membind=4,6 x", 0, {}),
        ("numactl --cpunodebind=4 --physcpubind=96-101 --membind=4 x", 0, {"numactl.one-cpu-bind": "info"}),
        ("numactl --physcpubind=96-101 --cpunodebind=4 x", 1, {"numactl.one-cpu-bind": "error"}),
        ("numactl --cpunodebind=9 x", 1, {"numactl.exists": "error"}),
        ("numactl --physcpubind=190-200 x", 1, {"numactl.exists": "error"}),
        ("numactl --cpunodebind=4 --membind=4 --preferred=4 x", 1, {"numactl.one-memory-policy": "error"}),
        ("numactl --cpubind=4 --localaloc x", 1, {"numactl.known-options": "error"}),
        ("numactl --cpunodebind=4 --membind=6 x", 0, {"numactl.memory-near": "warning"}),
        ("numactl --cpunodebind=4,6 --membind=4 x", 0, {"numactl.memory-near": "warning"}),
        ("numactl --cpunodebind=5 --membind=5 x", 0, {"numactl.near-npu": "warning"}),
        ("numactl --interleave=all x", 0, {}),
        ("numactl --localalloc x", 0, {}),
    ],
)
def test_a_line_gives_its_findings_and_no_other(
    here: Callable[..., None], text: str, code: int, found: dict[str, str]
) -> None:
    here("a2-healthy")
    got, run = linted(text)
    assert (got, failed(run)) == (code, found)


def test_memory_bound_to_a_node_without_memory_is_an_error(here: Callable[..., None]) -> None:
    here("a2-node-without-memory")
    nodes = numa.collect(host("a2-node-without-memory")).facts.nodes
    assert not isinstance(nodes, Missing)
    empty = next(number for number, node in nodes.items() if node.total_mib == 0)
    code, run = linted(f"numactl --cpunodebind={empty} --membind={empty} x")
    assert (code, failed(run)) == (1, {"numactl.memory-near": "error"})


def test_a_host_whose_nodes_nobody_saw_leaves_the_line_open(here: Callable[..., None]) -> None:
    here("a2-numa-unseen")
    code, run = linted("numactl --cpunodebind=4,6 --membind=4,6 x")
    assert (code, run["verdict"], failed(run)) == (3, "undecided", {})


def test_a_list_that_counts_from_the_cpuset_is_not_guessed(here: Callable[..., None]) -> None:
    here("a2-healthy")
    code, run = linted("numactl --physcpubind=+0-3 --cpunodebind=4 x")
    assert failed(run).get("numactl.one-cpu-bind") in (None, "error")
    assert any(f["verdict"] == "unknown" for f in run["findings"]) or code == 1


@pytest.mark.parametrize("text", ["vllm serve x", "numactl --cpunodebind='4", ""])
def test_what_is_no_line_of_numactl_is_a_bad_call(text: str) -> None:
    done = CliRunner().invoke(command, ["lint", text], standalone_mode=False)
    assert getattr(done.exception, "exit_code", None) == 2


@pytest.mark.parametrize(
    ("text", "options", "rest"),
    [
        ("numactl --cpunodebind=0 --membind 1 a -N 3", [("cpunodebind", "0"), ("membind", "1")], ("a", "-N", "3")),
        (
            "FOO=1 /usr/bin/numactl -N0 -m 1 -al -- a",
            [("cpunodebind", "0"), ("membind", "1"), ("all", ""), ("localalloc", "")],
            ("a",),
        ),
        ("sudo numactl --cpubind=0 --phys 1", [("cpunodebind", "0"), ("physcpubind", "1")], ()),
        ("numactl -c 0 -p1", [("cpunodebind", "0"), ("preferred", "1")], ()),
    ],
)
def test_options_are_read_as_getopt_reads_them(
    text: str, options: list[tuple[str, str]], rest: tuple[str, ...]
) -> None:
    found = words(text)
    assert isinstance(found, Words)
    assert [(option.name, option.value) for option in found.options] == options
    assert (found.command, found.unknown) == (rest, ())


CPUS = os.cpu_count() or 1
LISTS = st.sampled_from(["0", "0-1", "1", "all", "0,1"] if CPUS > 1 else ["0", "all"])


@pytest.mark.skipif(NUMACTL is None, reason="numactl is not installed")
@pytest.mark.parametrize(
    "options",
    [
        ["--cpunodebind=0", "--physcpubind=1"],
        ["--physcpubind=1", "--cpunodebind=0"],
        ["--physcpubind=0-1", "--physcpubind=0"],
        ["-C1", "-N0", "-C0"],
        ["--physcpubind=all"],
        ["-C", "0", "-m", "0"],
        ["--cpubind=0"],
        ["--phys=0"],
    ],
    ids=" ".join,
)
def test_numactl_does_what_the_lint_says(options: Sequence[str]) -> None:
    ran = subprocess.run(
        ["numactl", *options, "grep", "Cpus_allowed_list", "/proc/self/status"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = lines(line(" ".join(["numactl", *options])).facts, numa.collect(LiveHost(KnownEnv(frozenset(), ()))).facts)
    assert isinstance(found, tuple)
    assert found[0].cpus == ran.stdout.split()[1]


@pytest.mark.skipif(NUMACTL is None, reason="numactl is not installed")
@pytest.mark.parametrize(
    "options",
    ["--cpunodebind=4,6", "--membind=4", "--physcpubind=200", "--membind=0 --preferred=0", "--nonsense", "--localaloc"],
)
def test_what_numactl_refuses_is_an_error(options: str) -> None:
    ran = subprocess.run(["numactl", *options.split(), "true"], capture_output=True, check=False)
    code, _ = linted(f"numactl {options} true")
    assert (ran.returncode, code) == (1, 1)


@given(st.text(max_size=200))
def test_any_text_is_words_or_missing(text: str) -> None:
    assert isinstance(words(f"numactl {text}"), (Words, Missing))
    assert isinstance(words(text), (Words, Missing))


@given(
    st.lists(
        st.sampled_from(
            ["-N", "--membind=0", "0-3", "--physcpubind", "!0", "+1", "--cpunodebind=", "-C", "9999999999", "same"]
        ),
        max_size=8,
    )
)
def test_any_line_gives_a_row(parts: list[str]) -> None:
    nodes = numa.collect(host("a2-healthy")).facts
    assert isinstance(lines(line(" ".join(["numactl", *parts])).facts, nodes), (tuple, Missing))


@given(st.frozensets(st.integers(0, 300)))
def test_a_set_is_written_so_that_it_reads_back(cpus: frozenset[int]) -> None:
    assert cpu_set(written(cpus)) == cpus
    assert sum(last - first + 1 for first, last in ranges(cpus)) == len(cpus)


def test_each_text_is_in_both_languages_and_has_its_sources() -> None:
    from ascend_doctor.engine.checks import listed_ids, load_checks
    from ascend_doctor.engine.lint import lint
    from ascend_doctor.engine.rulebook import Rulebook

    folder = data_folder("checks") / "on-request"
    names = {name for listed in listed_ids([folder]).values() for name in listed}
    chosen = load_checks([data_folder("checks"), folder], names.__contains__)
    found = lint(chosen, Rulebook((folder,), ()))
    assert [wrong for wrong in found if "tests name no host" not in wrong] == []


def test_the_snapshot_may_be_a_folder() -> None:
    code, _ = linted(GUIDE, "--snapshot", str(FOLDER / "a2-healthy"))
    assert code == 1
