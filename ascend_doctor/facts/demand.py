"""What somebody means to run: the model and how it is to be split. Given with a call, never found on a host.

Sources: options of vLLM's engine (https://docs.vllm.ai/en/latest/configuration/engine_args.html) have the same names.
"""

from __future__ import annotations

from ascend_doctor.facts.safetensors import Tensor, tensors
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason, decoded, parsed
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.ABSENT, "not given with the call")


@dataclass(frozen=True)
class Wishes:
    """The options of a call; None where one was not given."""

    model: str
    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    quantization: str | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    max_model_len: int | None = None
    batch: int = 1
    batched_tokens: int | None = None
    gpu_memory_utilization: float = 0.9
    card: str = "live"
    eager: bool = False


@dataclass(frozen=True)
class Demand:
    """``config`` and ``tensors``: of a folder; absent where the model was named and not shown.

    ``wishes`` are the options of the call.
    """

    model: str | Missing
    wishes: Wishes | Missing
    config: str | Missing
    tensors: tuple[Tensor, ...] | Missing


def collect(host: Host) -> Collected[Demand]:
    """Asks nothing: no host tells what somebody means to run."""
    return Area("demand").of(Demand(NOT_GIVEN, NOT_GIVEN, NOT_GIVEN, NOT_GIVEN))


def demand(host: Host, wishes: Wishes) -> Collected[Demand]:
    """Reads config.json and the headers of the weight files where the model is a folder (a path with a slash)."""
    area = Area("demand")
    area.take("model", Parsed(None, "option:--model", {"": wishes.model}))
    if "/" not in wishes.model or isinstance(host.list(wishes.model).value, Missing):
        named = Missing(Reason.ABSENT, "named, not a folder")
        return area.of(Demand(wishes.model, wishes, named, named))
    folder = wishes.model.rstrip("/")
    config = area.take("config", parsed(host.read(f"{folder}/config.json"), decoded))
    headers: Parsed[tuple[Tensor, ...] | Missing] = tensors(host, folder)
    return area.of(Demand(wishes.model, wishes, config, area.take("tensors", headers)))
