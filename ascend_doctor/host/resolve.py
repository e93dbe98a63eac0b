"""Paths below a root that is not ``/``: links are followed inside it, as the kernel would after a chroot."""

from __future__ import annotations

from typing import Callable

from ascend_doctor.host import Missing, Reason

LINK_STEPS = 40
"""As Linux: the next link is an error (path_resolution(7))."""

TOO_MANY_LINKS = Missing(Reason.FAILED, "too many links")


def tidy(path: str) -> str:
    """The path without empty and ``.`` parts; ``..`` stays, since what it means depends on links."""
    if not path.startswith("/"):
        return path
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def resolved(path: str, target_of: Callable[[str], str | None]) -> str | Missing:
    """The path without links and ``..``; ``target_of`` tells where the link at a path points, None for no link."""
    here, ahead, steps = "", path.split("/")[::-1], 0
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        target = target_of(f"{here}/{part}")
        if target is None:
            here = f"{here}/{part}"
            continue
        steps += 1
        if steps > LINK_STEPS:
            return TOO_MANY_LINKS
        if target.startswith("/"):
            here = ""
        ahead += target.split("/")[::-1]
    return here or "/"


def folders_above(path: str) -> list[str]:
    """``/a/b/c`` gives ``/a/b``, ``/a`` and ``/``."""
    above = []
    while path not in ("", "/"):
        path = path.rpartition("/")[0] or "/"
        above.append(path)
    return above
