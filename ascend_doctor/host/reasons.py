"""Reasons that live hosts and snapshots give in the same words, so that a replay equals the run."""

from __future__ import annotations

from ascend_doctor.host import READ_LIMIT, Missing, Reason

NO_SUCH_FILE = Missing(Reason.ABSENT, "no such file")
NOT_A_FOLDER = Missing(Reason.ABSENT, "not a directory")
NOT_A_LINK = Missing(Reason.UNSUPPORTED, "not a link")
NOT_ABSOLUTE = Missing(Reason.FAILED, "not an absolute path")
NOT_SET = Missing(Reason.ABSENT, "not set")
TOO_LARGE = Missing(Reason.FAILED, f"larger than {READ_LIMIT >> 20} MiB")
NOT_IN_SNAPSHOT = Missing(Reason.NOT_COLLECTED, "not in the snapshot")


def not_a_file(kind: str) -> Missing:
    """For what cannot be read: ``kind`` as in Stat."""
    return Missing(Reason.FAILED, "is a directory" if kind == "dir" else f"not a regular file: {kind}")
