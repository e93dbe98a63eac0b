"""Frozen records behave as the standard's do."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from ascend_doctor.host import Answer, Missing, Reason
from ascend_doctor.host.collection_log import Question

OURS = Missing(Reason.DENIED, "no", "a.b")
STANDARD = dataclasses.make_dataclass(
    "Missing", [("reason", Reason), ("detail", str, ""), ("path", str, "")], frozen=True
)


def test_fields_and_replace_work() -> None:
    assert [f.name for f in dataclasses.fields(OURS)] == ["reason", "detail", "path"]
    assert dataclasses.replace(OURS, path="c").path == "c"
    assert dataclasses.is_dataclass(OURS)


def test_equality_hash_and_repr_are_by_value() -> None:
    assert Missing(Reason.DENIED, detail="no", path="a.b") == OURS
    assert Missing(Reason.DENIED) != OURS
    assert STANDARD(Reason.DENIED, "no", "a.b") != OURS
    assert len({OURS, Missing(Reason.DENIED, "no", "a.b")}) == 1
    assert repr(OURS) == repr(STANDARD(Reason.DENIED, "no", "a.b"))
    assert pickle.loads(pickle.dumps(OURS)) == OURS


def test_generic_records_are_records() -> None:
    assert Answer("file:/x", b"1") == Answer(source="file:/x", value=b"1", seconds=0.0)


def test_nothing_can_be_changed() -> None:
    thing: Any = OURS
    with pytest.raises(dataclasses.FrozenInstanceError):
        thing.path = "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del thing.path


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1.0, None, 4), {}), (("a", 1.0, None), {"source": "b"}), (("a",), {"odd": 1})],
)
def test_wrong_values_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Question(*values, **named)
