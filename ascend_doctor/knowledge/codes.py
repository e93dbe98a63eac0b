"""Error codes of the whole stack, in every spelling: rules/codes/*.yaml, and the chips' codes that faults.py knows.

The same digits mean different things in different places, so a spelling names its family: ``drvRetCode=17`` is the
driver's, ``retCode=0x31`` the task scheduler's, ``hcclRet -> 9`` HCCL's. A file of codes is called after its family and
what its codes begin with (``acl.507.yaml``, ``manager.EI.yaml``): a look-up reads it, and one line of its entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ascend_doctor.knowledge.faults import Fault, Faults
from ascend_doctor.knowledge.faults import load as load_faults
from ascend_doctor.knowledge.reading import RuleError, Source, load_yaml, source_of
from ascend_doctor.knowledge.remedies import RemedyStep, Texts
from ascend_doctor.records import dataclass

FOLDER = "codes"
BITS = "npu-bits.yaml"
FAMILIES = ("acl", "inner", "driver", "ts", "hccl", "dcmi", "torch", "manager", "switch")
MOST_TS = 0xFFF
"""The codes of the task scheduler are small: ``retCode=0x7020010`` is one of the runtime."""

_ENTRIES = re.compile(r"^entries:[ \t]*\n", re.MULTILINE)
_GRADES = {"L1": ("symptom", "info"), "L2": ("root", "warning"), "sub": ("symptom", "warning")}
_CLASSES = {
    "1": {"en": "the caller or its environment", "zh": "调用方或环境"},
    "2": {"en": "a resource, or a feature that is not there", "zh": "资源不足或特性不支持"},
    "3": {"en": "the state of a service", "zh": "业务状态"},
    "5": {"en": "internal", "zh": "内部错误"},
}


@dataclass(frozen=True)
class Part:
    """A part of a code and what it says: label, value, meaning."""

    label: Texts
    value: str
    meaning: Texts


@dataclass(frozen=True)
class Code:
    """What is known of a code. ``code``: its usual spelling; ``what``: of what kind; ``parts``: its fields decoded.

    ``name`` is empty where only its fields are known. ``surfaces_as``: the outer code that callers see for it.
    """

    code: str
    family: str
    name: str
    what: Texts
    meaning: Texts
    causes: Texts
    remedy: tuple[RemedyStep, ...]
    role: str
    severity: str
    layer: str
    source: Source
    parts: tuple[Part, ...]
    surfaces_as: str


@dataclass(frozen=True)
class Codes:
    """Looks codes up; of several folders the last one that knows a code counts."""

    folders: tuple[Path, ...]
    faults: Faults

    def of(self, text: str) -> Code | None:
        """The first code in a text that is listed. Raises RuleError for an entry that cannot be read."""
        for family, code in spelled(text):
            found = self.listed(family, code)
            if found is not None:
                return found
        return None

    def explained(self, text: str) -> Code | None:
        """As ``of``; for a code that is not listed what its fields tell."""
        found = self.of(text)
        if found is not None:
            return found
        unlisted = (
            self._chips(code) if family == "npu" else self._bare(family, code) for family, code in spelled(text)
        )
        return next((code for code in unlisted if code is not None), None)

    def listed(self, family: str, code: str) -> Code | None:
        """The code of a family, as ``spelled`` gives both."""
        if family == "npu":
            fault = self.faults.of(code)
            return None if fault is None else self._fault(fault)
        if family == "name":
            return self._named(code)
        for folder in reversed(self.folders):
            path = file_of(folder / FOLDER, family, code)
            if path is not None and (entry := _book(path).entry(code)) is not None:
                return self._code(_book(path), code, entry)
        return self._decoded_torch(code) if family == "torch" else None

    def every(self, family: str) -> Iterator[str]:
        """All codes of a family that the folders know."""
        for folder in self.folders:
            for path in sorted((folder / FOLDER).glob(f"{family}*.yaml")):
                if path.name.split(".")[0] == family:
                    yield from _book(path).codes()

    def every_of(self, path: Path) -> Iterator[str]:
        """The codes of one file."""
        return _book(path).codes()

    def _named(self, name: str) -> Code | None:
        for folder in reversed(self.folders):
            for path in sorted((folder / FOLDER).glob("*.yaml")):
                if path.name.split(".")[0] in FAMILIES and (code := _book(path).named(name)) is not None:
                    return self.listed(path.name.split(".")[0], code)
        return None

    def _code(self, book: _Book, code: str, entry: Mapping[str, Any]) -> Code:
        head, where = book.head, f"{book.path}: {code}"
        family = str(head.get("family", ""))
        because = head.get("because", {}).get(entry.get("because"), {})
        outer = str(entry.get("acl", ""))
        remedy = because.get("remedy") or {}
        return Code(
            code=written(family, code),
            family=family,
            name=str(entry.get("name", "")),
            what=head.get("what", {}),
            meaning={language: str(entry[language]) for language in ("en", "zh") if language in entry},
            causes={language: text for language, text in (because.get("cause") or {}).items() if text != "-"},
            remedy=(_sentence(remedy),) if remedy else (),
            role=str(entry.get("role", "symptom")),
            severity=str(entry.get("severity", "error")),
            layer=str(entry.get("layer", head.get("layer", "framework"))),
            source=source_of(head.get("sources", {}).get(entry.get("source"), {}), where),
            parts=self._parts(family, code, head),
            surfaces_as=outer,
        )

    def _parts(self, family: str, code: str, head: Mapping[str, Any]) -> tuple[Part, ...]:
        if family == "acl" and len(code) == 6 and code[0] in _CLASSES:
            return (Part({"en": "class", "zh": "类别"}, code[0], _CLASSES[code[0]]),)
        if family == "manager" and head.get("module"):
            module = str(head["module"])
            return (Part({"en": "module", "zh": "模块"}, code[:2], {"en": module, "zh": module}),)
        if family == "torch":
            return _torch_parts(code, head)
        return ()

    def _decoded_torch(self, code: str) -> Code | None:
        """ERR00002 is built of fields that are known, whether it is listed or not."""
        for folder in reversed(self.folders):
            path = folder / FOLDER / "torch.yaml"
            parts = _torch_parts(code, _book(path).head) if path.is_file() else ()
            if len(parts) == 2:
                says = {
                    "en": f"{parts[0].meaning['en']}: {parts[1].meaning['en']}",
                    "zh": f"{parts[0].meaning['zh']}：{parts[1].meaning['zh']}",
                }
                return self._code(_book(path), code, {"name": "", "role": "cascade", "source": "s1", **says})
        return None

    def _fault(self, fault: Fault) -> Code:
        role, severity = _GRADES.get(fault.advice.grade, ("root", "error"))
        return Code(
            code=f"0x{fault.code}",
            family="npu",
            name=fault.module,
            what=_KINDS.get(fault.kind, _KINDS["health"]),
            meaning=fault.name,
            causes=fault.advice.advice,
            remedy=tuple(_for_any_chip(step) for step in fault.advice.remedy),
            role="symptom" if fault.kind == "blackbox" else role,
            severity=severity,
            layer="hardware",
            source=fault.source,
            parts=self.bits(fault.code),
            surfaces_as="",
        )

    def _chips(self, code: str) -> Code | None:
        """A code of the chip of which only the fields are known."""
        parts = self.bits(code)
        if not parts:
            return None
        advice, kind = self.faults.unlisted(), _KINDS["blackbox" if code[0] in "AB" else "health"]
        return Code(
            code=f"0x{code}",
            family="npu",
            name="",
            what=kind,
            meaning={},
            causes=advice.advice,
            remedy=tuple(_for_any_chip(step) for step in advice.remedy),
            role="symptom",
            severity="warning",
            layer="hardware",
            source=source_of(self._bits_head().get("source", {}), BITS),
            parts=parts,
            surfaces_as="",
        )

    def _bare(self, family: str, code: str) -> Code | None:
        """A code of which only the family is known."""
        for folder in reversed(self.folders):
            path = file_of(folder / FOLDER, family, code)
            if path is not None and family in FAMILIES:
                return self._code(_book(path), code, {"source": "s1"})
        return None

    def bits(self, code: str) -> tuple[Part, ...]:
        """The fields of a code of the chip."""
        if not re.fullmatch(r"[0-9A-F]{8}", code):
            return ()
        number, head = int(code, 16), self._bits_head()
        if code[0] in "AB":
            module = number >> 17 & 0x7F
            name = str(head.get("blackbox", {}).get(module, ""))
            return (Part({"en": "module", "zh": "模块"}, f"0x{module:X}", {"en": name, "zh": name}),)
        node, sensor, state = number >> 17 & 0x7FF, number >> 9 & 0xFF, number & 0x1FF
        like = self._node(node, code)
        known = head.get("states", {}) if sensor == 0xC0 else {}
        return (
            Part({"en": "node", "zh": "节点"}, f"0x{node:X}", {"en": like, "zh": like}),
            Part({"en": "sensor", "zh": "传感器"}, f"0x{sensor:X}", head.get("sensors", {}).get(sensor, {})),
            Part({"en": "state", "zh": "状态"}, f"0x{state:X}", known.get(state, {})),
        )

    def _node(self, node: int, like: str) -> str:
        """The module of the first listed code with that node; they begin alike."""
        for code in self.faults.listed(like[:2]):
            if len(code) == 8 and code[0] not in "AB" and int(code, 16) >> 17 & 0x7FF == node:
                fault = self.faults.of(code)
                if fault is not None and fault.kind == "health" and fault.module:
                    return fault.module
        return ""

    def _bits_head(self) -> Mapping[str, Any]:
        for folder in reversed(self.folders):
            if (folder / FOLDER / BITS).is_file():
                return _whole(folder / FOLDER / BITS)
        return {}


_KINDS: Mapping[str, Texts] = {
    "health": {"en": "health event of the chip", "zh": "芯片健康事件"},
    "blackbox": {"en": "black-box record of a subsystem", "zh": "子系统黑匣子记录"},
    "bmc": {"en": "server event reported by the BMC", "zh": "BMC/iBMC 上报的服务器事件"},
    "synthetic": {"en": "code that MindCluster makes itself", "zh": "MindCluster 自行合成的故障码"},
}


def load(folders: Sequence[Path]) -> Codes:
    """Reads nothing yet."""
    return Codes(tuple(folders), load_faults(folders))


_SPELLINGS = re.compile(
    r"(?<![A-Za-z0-9])(?P<torch>ERR\d{5})(?!\d)"
    r"|(?<![A-Za-z0-9_])(?P<manager>[EW][A-Z1-9]\d{4})(?![A-Za-z0-9])"
    r"|(?P<switch>\[0x[0-9a-f]{8},[0-9a-z]{2,8},\w{2,4},\w{2,4}\])"
    r"|(?:err[Nn]o ?\[|)0x(?P<long>[0-9a-f]{16})\]?"
    r"|hccl(?:Ret|_result|Result|)\s?(?:->|[=:])\s?(?P<hccl>\d{1,4})(?!\d)|(?<![A-Za-z])ret\[(?P<ret>\d{1,4})\]"
    r"|drv_?ret_?code\s?[=:]\s?(?P<driver>\d{1,5})(?!\d)"
    r"|(?:dcmi:|ret is |(?<![\w.-]))(?P<dcmi>-8\d{3})(?!\d)"
    r"|(?:ret_?code|err(?:or)?_?code|result|status|ret|ts)\s?(?:[=:]|is)\s?\[?0x(?P<small>[0-9a-f]{1,3})(?![0-9a-f])"
    r"|0x(?P<hex>[0-9a-f]{7,9})(?![0-9a-f])"
    r"|(?<![0-9A-Za-z_])(?P<bare>[0-9a-f]{8,9})(?![0-9A-Za-z_])"
    r"|(?<![0-9A-Za-z_.])(?P<acl>[1-5]\d{5})(?![0-9A-Za-z_]|\.\d)"
    r"|(?<![0-9A-Za-z_])0x(?P<tiny>[0-9a-f]{1,3})(?![0-9a-fA-F])"
    r"|(?<![A-Za-z0-9_])(?P<name>(?:ACL|ACLNN|RT|HCCL|DRV|TS|DCMI|GE|ge|aclnn)_[A-Z0-9_]{3,80})(?![A-Za-z0-9_])",
    re.ASCII | re.IGNORECASE,
)


def spelled(text: str) -> Iterator[tuple[str, str]]:
    """The codes in a text as (family, code), in their order; one spelling may mean two things."""
    for match in _SPELLINGS.finditer(text):
        kind = match.lastgroup or ""
        yield from _READERS[kind](match[kind].upper())


def written(family: str, code: str) -> str:
    """How a code is written in logs."""
    if family == "inner":
        return f"0x{code.lstrip('0').lower()}"
    return {"hccl": "hccl:", "driver": "drvRetCode:", "dcmi": "dcmi:", "ts": "retCode:0x"}.get(family, "") + (
        code.lower() if family == "ts" else code
    )


def file_of(folder: Path, family: str, code: str) -> Path | None:
    """The file whose name says that it holds such codes: of several the one that says most."""
    beginnings = [code[:length] for length in range(len(code), 0, -1)]
    names = [*(f"{family}.{beginning}.yaml" for beginning in beginnings if "[" not in beginning), f"{family}.yaml"]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _long(code: str) -> Iterator[tuple[str, str]]:
    """errNo of HCCL: its module is 5, the low 16 bits are the result."""
    number = int(code, 16)
    if number >> 24 in (0, 5):
        yield "hccl", str(number & 0xFFFF)


def _hex(code: str) -> Iterator[tuple[str, str]]:
    """An inner code of the runtime has lost a zero; what has eight digits may be one of the chip."""
    if len(code) == 7 or code.startswith("07"):
        yield "inner", code.zfill(8)
    if len(code) >= 8:
        yield "npu", code


def _bare(code: str) -> Iterator[tuple[str, str]]:
    """Digits alone may be an inner code in decimal: 117506049 is 0x07010001."""
    if re.search(r"[A-F]", code) or code[0] in "4589":
        yield "npu", code
    if code.isdigit() and int(code) >> 24 == 7:
        yield "inner", f"{int(code):08X}"
    elif code.startswith("07"):
        yield "inner", code


def _acl(code: str) -> Iterator[tuple[str, str]]:
    yield "acl", code


def _name(code: str) -> Iterator[tuple[str, str]]:
    yield "name", code


def _small(code: str) -> Iterator[tuple[str, str]]:
    yield "ts", code.lstrip("0") or "0"


def _plain(family: str) -> Any:
    def read(code: str) -> Iterator[tuple[str, str]]:
        yield family, code

    return read


def _switch(code: str) -> Iterator[tuple[str, str]]:
    """Written in small letters, but for the name of a level."""
    head, _, rest = code.partition(",")
    yield "switch", f"{head.lower()},{rest.lower().replace(',l2', ',L2').replace(',l1', ',L1')}"


_READERS: Mapping[str, Any] = {
    "torch": _plain("torch"),
    "manager": _plain("manager"),
    "switch": _switch,
    "long": _long,
    "hccl": _plain("hccl"),
    "ret": _plain("hccl"),
    "driver": _plain("driver"),
    "dcmi": _plain("dcmi"),
    "small": _small,
    "tiny": _small,
    "hex": _hex,
    "bare": _bare,
    "acl": _acl,
    "name": _name,
}


@dataclass(frozen=True)
class _Book:
    """A file of codes: its head is read as a whole, its entries one by one."""

    path: Path
    head: Mapping[str, Any]
    entries: str

    def entry(self, code: str) -> Mapping[str, Any] | None:
        """The line of a code."""
        start = self.entries.find(f'  "{code}": {{')
        if start < 0 or (start and self.entries[start - 1] != "\n"):
            return None
        line = self.entries[start : self.entries.find("\n", start)]
        value = next(iter(_mapping(line, f"{self.path}: {code}").values()))
        if not isinstance(value, Mapping):
            raise RuleError(f"{self.path}: {code}: write {{name: ..., role: ..., en: ..., zh: ...}}")
        return value

    def named(self, name: str) -> str | None:
        """The code of that name."""
        found = re.search(rf'^  "([^"\n]{{1,40}})": {{name: "{re.escape(name)}"', self.entries, re.MULTILINE)
        return found[1] if found else None

    def codes(self) -> Iterator[str]:
        return (match[1] for match in re.finditer(r'^  "([^"\n]{1,40})":', self.entries, re.MULTILINE))


@cache
def _book(path: Path) -> _Book:
    parts = _ENTRIES.split(path.read_text(encoding="utf-8"), maxsplit=1)
    return _Book(path, _mapping(parts[0], str(path)), parts[1] if len(parts) > 1 else "")


@cache
def _whole(path: Path) -> Mapping[str, Any]:
    value = load_yaml(path)
    if not isinstance(value, Mapping):
        raise RuleError(f"{path}: a mapping is wanted here")
    return value


def _mapping(text: str, where: str) -> Mapping[str, Any]:
    import yaml

    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise RuleError(f"{where}: no valid YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(value, Mapping):
        raise RuleError(f"{where}: a mapping is wanted here")
    return value


def _torch_parts(code: str, head: Mapping[str, Any]) -> tuple[Part, ...]:
    digits = code[3:]
    found = (
        ({"en": "part", "zh": "子模块"}, digits[:2], head.get("submodules", {}).get(digits[:2])),
        ({"en": "kind", "zh": "类别"}, digits[2:], head.get("kinds", {}).get(digits[2:])),
    )
    return tuple(Part(label, value, meaning) for label, value, meaning in found if meaning)


def _for_any_chip(step: RemedyStep) -> RemedyStep:
    """The steps of the chips' codes name a card and chip, which a code alone does not."""
    command = step.command and step.command.replace(" {npu}{chip}", " NPU_ID -c CHIP_ID")
    return RemedyStep(step.text, command, step.needs_root, step.effect, step.undo)


def _sentence(text: Texts) -> RemedyStep:
    return RemedyStep(text=text, command=None, needs_root=False, effect="none", undo=None)
