"""What msModelSlim's quant_model_description.json says of a checkpoint: how each tensor is quantised.

Source: msModelSlim (https://gitcode.com/Ascend/msmodelslim): name of a tensor -> FLOAT, W8A8, W8A8_DYNAMIC ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from ascend_doctor.facts.safetensors import Tensor
from ascend_doctor.host import Missing, Reason, Shown, decoded
from ascend_doctor.records import dataclass

_SCHEME = re.compile(r"W\d{1,2}A\d{1,2}\w{0,40}|FLOAT", re.ASCII)
MOST_NAMED = 1000
PLAIN = "FLOAT"


@dataclass(frozen=True)
class Description:
    """``schemes``: those that are used, FLOAT aside; ``names``: the tensors that have an entry."""

    schemes: tuple[str, ...]
    names: frozenset[str]


def description(data: bytes) -> Missing | Shown[Description]:
    try:
        whole = json.loads(decoded(data))
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, Mapping):
        return Missing(Reason.FAILED, "quant_model_description.json is no JSON object")
    entries = {n: v for n, v in whole.items() if isinstance(v, str) and _SCHEME.fullmatch(v)}
    schemes = tuple(sorted({*entries.values()} - {PLAIN}))
    return Shown(Description(schemes, frozenset(entries)), {"": f"{len(entries)} tensors: {', '.join(schemes)}"[:400]})


def undescribed(tensors: Iterable[Tensor], found: Description) -> tuple[str, ...]:
    """Weights of linear layers without an entry; experts are counted together elsewhere and not looked at."""
    linear = (t.name for t in tensors if len(t.shape) == 2 and t.name.endswith("_proj.weight") and ".*." not in t.name)
    return tuple(sorted(name for name in linear if name not in found.names))[:MOST_NAMED]
