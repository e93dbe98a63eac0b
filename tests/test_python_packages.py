from __future__ import annotations

from pathlib import Path

import pytest
from hosts import host
from hypothesis import given
from hypothesis import strategies as st

from ascend_doctor.derive.python import doubled, requirements, stubs
from ascend_doctor.facts import python
from ascend_doctor.facts.python import collect, named, normal
from ascend_doctor.facts.python import requirements as demands
from ascend_doctor.host import Host, Missing, Reason
from ascend_doctor.knowledge import packages
from ascend_doctor.knowledge.reading import RuleError

PACKAGES = packages.load([Path(__file__).parent.parent / "rules"])
SITE = "/usr/local/python3.11.13/lib/python3.11/site-packages"


def requirements_of(machine: Host):
    return {(r.package, r.needs): r.severity for r in requirements(python.collect(machine).facts, PACKAGES)}


@pytest.mark.parametrize(
    ("entry", "package"),
    [
        ("torch_npu-2.7.1.post2.dist-info", ("torch_npu", "2.7.1.post2")),
        ("torch-2.8.0+cpu.dist-info", ("torch", "2.8.0+cpu")),
        ("vllm_ascend-0.16.0rc2.dev902+g1f2e3d.dist-info", ("vllm_ascend", "0.16.0rc2.dev902+g1f2e3d")),
        ("PyYAML-5.4.1.egg-info", ("pyyaml", "5.4.1")),
        ("zope.interface-5.4.0-py3.10.egg-info", ("zope_interface", "5.4.0")),
        ("vllm-ascend.egg-link", ("vllm_ascend", "")),
        ("torch", None),
        ("~orch-2.7.1.dist-info", None),  # what pip leaves of an installation that was broken off
        ("__editable__.vllm-0.13.0.pth", None),
    ],
)
def test_a_folder_names_its_package(entry: str, package: tuple[str, str] | None) -> None:
    assert named(entry) == package


def test_names_are_compared_as_pip_does() -> None:
    assert normal("Torch-NPU") == normal("torch.npu") == "torch_npu"


def test_demands_end_where_the_description_begins() -> None:
    text = (
        b"Metadata-Version: 2.1\nName: x\nRequires-Dist: torch==2.7.1\nRequires-Dist: numpy (<2)\n\nRequires-Dist: no\n"
    )
    assert demands(text).value == ("torch==2.7.1", "numpy (<2)")


@given(st.binary(max_size=300))
def test_any_bytes_give_demands(data: bytes) -> None:
    assert isinstance(demands(data).value, tuple)


@given(st.text(max_size=80))
def test_any_name_is_a_package_or_none(entry: str) -> None:
    assert named(entry) is None or isinstance(named(entry), tuple)


def test_the_packages_of_a_host_are_read_without_running_it() -> None:
    collected = collect(host("a2-container-healthy"))
    found = collected.facts.packages
    assert found["torch_npu"].version == "2.8.0.post2"
    assert found["torch_npu"].requires == ("torch==2.8.0",)
    assert collected.provenance['python.packages["torch_npu"]'] == (f"file:{SITE}", "torch_npu-2.8.0.post2.dist-info")


def test_the_first_folder_of_the_path_counts() -> None:
    machine = host(
        "x86-healthy",
        set={"files": {"/usr/lib/python3/dist-packages/numpy-1.21.5.egg-info": "Metadata-Version: 1.2\n"}},
    )
    numpy = collect(machine).facts.packages["numpy"]
    assert (numpy.version, numpy.also) == ("1.26.4", ())


def test_one_folder_that_may_not_be_listed_leaves_all_packages_unknown() -> None:
    found = collect(host("a2-packages-unseen")).facts.packages
    assert isinstance(found, Missing)
    assert (found.reason, found.path) == (Reason.DENIED, "python.packages")


def test_without_an_interpreter_nothing_is_known() -> None:
    machine = host("a2-healthy", set={"python": {"missing": "absent"}})
    assert isinstance(collect(machine).facts.packages, Missing)


def test_what_other_checks_judge_is_left_to_them() -> None:
    found = requirements_of(host("a2-container-healthy"))
    assert set(found.values()) == {"none"}
    assert ("vllm", "torch") not in found
    assert ("torch_npu", "torch") not in found
    assert ("vllm_ascend", "numpy") not in found


def test_a_marker_is_judged_for_the_target_and_not_for_us() -> None:
    text = (
        "Requires-Dist: numpy<1; python_version < '3.4'\nRequires-Dist: numpy<1; platform_machine == 's390x'\n"
        "Requires-Dist: numpy<1; extra == 'old'\nRequires-Dist: numpy<1.27; platform_machine == 'aarch64'\n"
        "Requires-Dist: numpy what\n"
    )
    machine = host("a2-container-healthy", set={"files": {f"{SITE}/vllm-0.13.0.dist-info/METADATA": text}})
    found = [r.wanted for r in requirements(python.collect(machine).facts, PACKAGES) if r.package == "vllm"]
    assert found == ["<1.27"]


def test_another_patch_is_told_and_another_release_warned_of() -> None:
    found = requirements_of(host("a2-other-transformers"))
    assert found["vllm_ascend", "transformers"] == "warning"
    assert found["transformers", "tokenizers"] == "info"


def test_a_stub_and_a_doubled_package_are_named() -> None:
    assert stubs(collect(host("a2-stub-package")).facts, PACKAGES)[0].which == "llamafactory_ascend"
    assert doubled(collect(host("a2-package-twice")).facts)[0].which == "torch 2.7.1 2.8.0"


@pytest.mark.parametrize(
    "text",
    [
        "[a]\n",
        "elsewhere: [{package: a, needs: b, why: {en: x}, confidence: sure}]\n",
        "elsewhere: [{package: a, why: {en: x}, confidence: vendor-doc}]\n",
        "stubs: [{name: a, instead: x, confidence: vendor-doc}]\n",
        "stubs: [a]\n",
    ],
)
def test_a_wrong_rule_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "compat").mkdir()
    (tmp_path / "compat" / "packages.yaml").write_text(text)
    with pytest.raises(RuleError, match=r"packages\.yaml"):
        packages.load([tmp_path])
