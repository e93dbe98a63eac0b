"""What is known of logs, put together for the analysis: signatures, codes, and what to look for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascend_doctor.knowledge import codes as code_books
from ascend_doctor.knowledge import signatures as signature_books
from ascend_doctor.logs.analysis import Book
from ascend_doctor.logs.graph import known_of
from ascend_doctor.logs.scanning import Anchors
from ascend_doctor.records import dataclass

CODE_WORDS = ("error code is ", "error code:", "runtime result = ", "EI00", "EJ00", "EL00", "EZ99")
"""What stands before a code, or how one begins, on lines that no signature knows."""

QUIET_WORDS = ("Entry-HcclCommInit",)
"""Looked for on INFO lines of CANN too: they tell which rank a process is."""


@dataclass(frozen=True)
class Knowledge:
    """The signatures and codes of the chosen rules."""

    signatures: signature_books.Signatures
    codes: code_books.Codes

    def anchors(self) -> Anchors:
        """What to look for, in any kind of log."""
        return Anchors((*self.signatures.anchors(), *CODE_WORDS), QUIET_WORDS)

    def book(self) -> Book:
        return Book(self.signatures, self.codes.of, known_of(self.signatures.by_id))


def load(folders: Sequence[Path]) -> Knowledge:
    """Raises RuleError for a file that cannot be used."""
    return Knowledge(signature_books.load(folders), code_books.load(folders))
