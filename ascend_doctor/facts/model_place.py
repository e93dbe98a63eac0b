"""Where the weights of a launch lie: the file system of their folder, or the cache that a hub's name is fetched into.

Sources: proc_pid_mountinfo(5); huggingface_hub, environment variables and cache layout
(https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables); ModelScope, MODELSCOPE_CACHE
(https://modelscope.cn/docs/models/download); vLLM's VLLM_USE_MODELSCOPE.
"""

from __future__ import annotations

from ascend_doctor.facts.disks import home, mount_of, mounts, nearest
from ascend_doctor.host import Area, Collected, Host, Missing, Parsed, Reason
from ascend_doctor.records import dataclass

NOT_GIVEN = Missing(Reason.UNSUPPORTED, "no launch command was given")
IS_FOLDER = Missing(Reason.UNSUPPORTED, "the model is a folder here")
IS_NAMED = Missing(Reason.UNSUPPORTED, "the model is named and not a folder here")
MIB = 1 << 20
TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class ModelPlace:
    """``device``: what is mounted there, such as ``10.0.0.1:/models``. ``cache``: where a named model is kept.

    ``cached``: whether anything of it is there; ``offline``: the hub may not be asked.
    """

    filesystem: str | Missing
    device: str | Missing
    cache: str | Missing
    cached: bool | Missing
    free_mib: int | Missing
    offline: bool | Missing


def collect(host: Host) -> Collected[ModelPlace]:
    """Asks nothing: which folder matters is said by a launch command."""
    return Area("model_place").of(ModelPlace(*[NOT_GIVEN] * 6))


def model_place(host: Host, model: str | Missing) -> Collected[ModelPlace]:
    """Of a folder (an absolute path) its mount; of a hub's name, ``owner/name``, the cache."""
    if isinstance(model, Missing):
        return Area("model_place").of(ModelPlace(*[Missing(model.reason, "the command names no model")] * 6))
    return _folder(host, model) if model.startswith("/") else _named(host, model)


def _folder(host: Host, folder: str) -> Collected[ModelPlace]:
    area = Area("model_place")
    answer = host.read("/proc/self/mountinfo")
    mount = None if isinstance(answer.value, Missing) else mount_of(folder.rstrip("/") or "/", mounts(answer.value))
    unseen = Missing(Reason.FAILED, f"no mount in mountinfo holds {folder}")
    if isinstance(answer.value, Missing):
        unseen = answer.value
    system = area.take("filesystem", Parsed(mount.filesystem if mount else unseen, answer.source, {"": _line(mount)}))
    device = area.take("device", Parsed(mount.device if mount else unseen, answer.source, {"": _line(mount)}))
    return area.of(ModelPlace(system, device, IS_FOLDER, IS_FOLDER, IS_FOLDER, IS_FOLDER))


def _line(mount: object) -> str:
    return str(getattr(mount, "line", "no mount holds it"))


def _named(host: Host, model: str) -> Collected[ModelPlace]:
    area = Area("model_place")
    offline = _switch(host, "HF_HUB_OFFLINE")
    scope = _switch(host, "VLLM_USE_MODELSCOPE")
    cache = scope if isinstance(scope, Missing) else _cache(host, scope)
    if isinstance(cache, Missing):
        return area.of(ModelPlace(IS_NAMED, IS_NAMED, cache, cache, cache, offline))
    owner, slash, name = model.partition("/")
    places = (
        [f"{cache}/{middle}{model.replace('.', '___')}" for middle in ("models/", "", "hub/models/", "hub/")]
        + [f"{cache}/{middle}{model}" for middle in ("models/", "", "hub/models/", "hub/")]
        if scope
        else [f"{cache}/models--{owner}{'--' if slash else ''}{name}/snapshots"]
    )
    there = [host.list(place) for place in places]
    found = any(not isinstance(answer.value, Missing) and answer.value for answer in there)
    denied = next(
        (a.value for a in there if isinstance(a.value, Missing) and a.value.reason is not Reason.ABSENT), None
    )
    cached: bool | Missing = found if found or denied is None else denied
    at, room = nearest(host, cache)
    free = room.value if isinstance(room.value, Missing) else room.value.free // MIB
    area.take("cached", Parsed(cached, there[0].source, {"": f"{model} {'is' if found else 'is not'} in {cache}"}))
    area.take("free_mib", Parsed(free, room.source, {"": f"{at}: {free} MiB free"}))
    return area.of(ModelPlace(IS_NAMED, IS_NAMED, cache, cached, free, offline))


def _switch(host: Host, name: str) -> bool | Missing:
    value = host.env(name).value
    if isinstance(value, Missing):
        return False if value.reason is Reason.ABSENT else value
    return value.strip().lower() in TRUE


def _cache(host: Host, scope: bool) -> str | Missing:
    """The first variable that is set, else the folder in the home."""
    known = (("MODELSCOPE_CACHE", ""),) if scope else (("HF_HUB_CACHE", ""), ("HF_HOME", "/hub"))
    for name, below in known:
        value = host.env(name).value
        if isinstance(value, Missing):
            if value.reason is not Reason.ABSENT:
                return value
        elif value.startswith("/"):
            return value.rstrip("/") + below
    own = home(host)
    if isinstance(own, Missing):
        return own
    return f"{own.rstrip('/')}/.cache/{'modelscope' if scope else 'huggingface/hub'}"
