"""The words that reports say of themselves, from reports/words.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ascend_doctor.engine.findings import WaiverUsed
from ascend_doctor.knowledge.reading import load_yaml
from ascend_doctor.paths import data_folder
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Words:
    """One language's words: ``words["found"]``, ``words.count("errors", 3)``."""

    language: str
    table: Mapping[str, Any]

    def __getitem__(self, name: str) -> str:
        return str(self.table[name])

    def after(self, begin: str, rest: str) -> str:
        """``Not fit to deploy: 2 errors``, with this language's colon."""
        return f"{begin}{self['colon']}{rest}"

    def waiver(self, used: WaiverUsed) -> str:
        """Who waives a finding, until when, and why."""
        values = {"owner": used.owner, "expires": used.expires, "days": used.days_left, "reason": used.reason}
        return self["waived_until"].format(**values)

    def count(self, name: str, n: int) -> str:
        """``3 errors``, in this language's form for that number."""
        return str(self.table[name]["one" if n == 1 else "many"]).format(n=n)


def words(language: str) -> Words:
    """The words of ``en`` or ``zh``."""
    return Words(language, _tables()[language])


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    """Language -> its words; the file is ours and does not change while we run."""
    tables: Mapping[str, Mapping[str, Any]] = load_yaml(data_folder("reports") / "words.yaml")
    return tables
