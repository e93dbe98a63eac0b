"""Where the packages of the target Python contradict each other."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ascend_doctor.derive import rows
from ascend_doctor.facts.python import DESCRIBED, Package, TargetPython, normal
from ascend_doctor.host import Missing, keyed
from ascend_doctor.knowledge.packages import Packages
from ascend_doctor.records import dataclass


@dataclass(frozen=True)
class Requirement:
    """What one package wants of another that is installed. ``severity``: none where it has it."""

    package: str
    version: str
    needs: str
    wanted: str
    found: str
    severity: str
    install: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Concern:
    """Packages that are wrong in one way, all in one row; ``advice``: what to do in their place."""

    count: int
    which: str
    advice: Mapping[str, str]
    reads: tuple[str, ...]


@rows("python.requirements")
def requirements(python: TargetPython, packages: Packages) -> tuple[Requirement, ...] | Missing:
    """One row for each demand of a package of a deployment on another of them, unless it is judged elsewhere."""
    if isinstance(python.packages, Missing):
        return python.packages
    found = []
    for package in python.packages.values():
        if isinstance(package.requires, Missing) or isinstance(package.version, Missing):
            continue
        for line in package.requires:
            row = _requirement(python, packages, package, str(package.version), line)
            if row:
                found.append(row)
    return tuple(found)


def _requirement(
    python: TargetPython, packages: Packages, package: Package, version: str, line: str
) -> Requirement | None:
    head = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
    name = normal(head[0]) if head else ""
    installed = None if isinstance(python.packages, Missing) else python.packages.get(name)
    if name not in DESCRIBED or installed is None or isinstance(installed.version, Missing):
        return None
    if packages.is_judged_elsewhere(package.name, name):
        return None

    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Demanded
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Demanded(line)
    except InvalidRequirement:
        return None
    if not _applies(wanted, python):
        return None
    try:
        fits = wanted.specifier.contains(installed.version, prereleases=True)
        severity = "none" if fits else _severity(str(wanted.specifier), Version(installed.version))
    except InvalidVersion:
        return None
    return Requirement(
        package.name,
        version,
        name,
        str(wanted.specifier) or "any",
        installed.version,
        severity,
        f"{wanted.name}{wanted.specifier}",
        (keyed("python.packages", package.name) + ".requires", keyed("python.packages", name)),
    )


def _applies(wanted: object, python: TargetPython) -> bool:
    """Whether a marker holds for the target; one of an extra, or of what is not known of the target, does not."""
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName

    marker = getattr(wanted, "marker", None)
    if marker is None:
        return True
    text = str(marker)
    if "extra" in text:
        return False
    environment = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
    if isinstance(python.version, str):
        environment["python_version"] = ".".join(python.version.split(".")[:2])
        environment["python_full_version"] = python.version
    elif "python" in text:
        return False
    if isinstance(python.machine, str):
        environment["platform_machine"] = python.machine
    elif "platform_machine" in text:
        return False
    try:
        return bool(marker.evaluate(environment))
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _severity(specifier: str, found: object) -> str:
    """Info where the version is of the same major.minor as one that is named, else warning."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    for wanted in SpecifierSet(specifier):
        try:
            named = Version(wanted.version.removesuffix(".*"))
        except InvalidVersion:
            continue
        if wanted.operator != "!=" and named.release[:2] == getattr(found, "release", ())[:2]:
            return "info"
    return "warning"


@rows("python.stubs")
def stubs(python: TargetPython, packages: Packages) -> tuple[Concern, ...] | Missing:
    """One row where any package is installed: those whose only content is that they are the wrong ones."""
    if isinstance(python.packages, Missing):
        return python.packages
    wrong = [stub for stub in packages.stubs if stub.name in python.packages]
    languages = {language for stub in wrong for language in stub.instead}
    advice = {language: "; ".join(f"{s.name}: {s.instead.get(language, '')}" for s in wrong) for language in languages}
    return _concern(python.packages, [stub.name for stub in wrong], advice)


@rows("python.doubled")
def doubled(python: TargetPython) -> tuple[Concern, ...] | Missing:
    """One row where any package is installed: those of which one folder holds two versions."""
    if isinstance(python.packages, Missing):
        return python.packages
    twice = [package for package in python.packages.values() if package.also]
    return _concern(python.packages, [f"{p.name} {p.version} {' '.join(p.also)}" for p in twice], {})


def _concern(installed: Mapping[str, Package], which: list[str], advice: Mapping[str, str]) -> tuple[Concern, ...]:
    if not installed:
        return ()
    named = [keyed("python.packages", text.split(" ")[0]) for text in which]
    return (Concern(len(which), ", ".join(which), advice, tuple(named) or ("python.packages",)),)
