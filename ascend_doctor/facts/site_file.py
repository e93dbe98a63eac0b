"""A file of a package of the target interpreter, read without running it."""

from __future__ import annotations

from typing import Callable, TypeVar

from ascend_doctor.host import Host, Missing, Parsed, Reason, Shown, parsed

T = TypeVar("T")


def of_site(host: Host, file: str, parse: Callable[[bytes], Shown[T | Missing]]) -> Parsed[T | Missing]:
    """What the file says in the first of the interpreter's folders that has it."""
    python = host.python
    site = python.value if isinstance(python.value, Missing) else python.value.site
    if isinstance(site, Missing):
        return Parsed(site, python.source, {"": site.reason.value})
    for folder in site:
        answer = host.read(f"{folder}/{file}")
        if not (isinstance(answer.value, Missing) and answer.value.reason is Reason.ABSENT):
            return parsed(answer, parse)
    return Parsed(Missing(Reason.ABSENT, f"no {file}"), python.source, {"": f"no {file}"})
