"""One host as the checks see it: areas collected once, rows made once, and where each fact came from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

from ascend_doctor.derive import row_set
from ascend_doctor.engine.findings import Evidence
from ascend_doctor.facts import AREAS
from ascend_doctor.host import Collected, Host, Missing, Reason
from ascend_doctor.knowledge import PARTS
from ascend_doctor.knowledge.profile import Profile

WORKERS = 8
"""Areas that are collected at the same time on a live machine; a snapshot has nothing to wait for."""


class Situation:
    """Facts, rows and rules for one run. A part that breaks is Missing(failed) and is named in ``broken``."""

    def __init__(
        self,
        host: Host,
        rules: Sequence[Path],
        workers: int = WORKERS,
        profile: Profile | None = None,
        given: Sequence[Collected[Any]] = (),
    ) -> None:
        self.host = host
        self._rules = rules
        self._workers = workers
        self._collected: dict[str, Collected[Any]] = {area.name: area for area in given}
        self._rows: dict[str, object] = {}
        self._profile = profile or Profile()
        self._parts: dict[str, object] = {"profile": self._profile}
        self.broken: list[str] = []
        self.seconds: dict[str, float] = {}

    def collect(self, areas: Iterable[str]) -> None:
        """Collects the areas, side by side where several workers may wait for a machine; the order changes nothing."""
        waiting = [area for area in areas if area not in self._collected]
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    area = waiting.pop(0)
                begun = time.perf_counter()
                self._collected[area] = self._collect(area)
                self.seconds[area] = time.perf_counter() - begun

        if self._workers == 1:
            work()
            return
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self._workers, len(waiting)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _collect(self, area: str) -> Collected[Any]:
        collected = self.guarded(f"facts/{area}", area, lambda: _collected(area, self.host))
        return Collected(area, collected, {}) if isinstance(collected, Missing) else collected

    def facts(self, area: str) -> object:
        """The facts of an area; Missing(not_collected) where no check asked for it."""
        collected = self._collected.get(area)
        return Missing(Reason.NOT_COLLECTED, "not asked for", area) if collected is None else collected.facts

    def replace_facts(self, area: str, facts: object) -> None:
        """Judges as if the area were so; the rows are made anew."""
        self._collected[area] = Collected(area, facts, self._collected[area].provenance)
        self._rows.clear()

    def rows(self, name: str) -> object:
        """A row set, made from the facts when first asked for."""
        if name not in self._rows:
            found = row_set(name)
            if found is None:
                raise LookupError(name)
            needs = [self.need(need) for need in found.needs]
            whole = next((n for n in needs if isinstance(n, Missing)), None)
            self._rows[name] = whole or self.guarded(f"derive/{name}", name, lambda: found.function(*needs))
        return self._rows[name]

    def known_rows(self, name: str) -> object:
        """A row set where all areas that it needs are collected; Missing(not_collected) else, and nothing is asked."""
        found = row_set(name)
        if found is None:
            raise LookupError(name)
        gone = [need for need in found.needs if need in AREAS and need not in self._collected]
        return Missing(Reason.NOT_COLLECTED, "not asked for", gone[0]) if gone else self.rows(name)

    def part(self, name: str) -> object:
        """A part of the rules as it was used; None where no row set asked for it."""
        return self._parts.get(name)

    def evidence(self, paths: Iterable[str]) -> tuple[Evidence, ...]:
        """What shows the facts at these paths: the longest prefix that an area filed, each once."""
        found: dict[tuple[str, str], None] = {}
        for path in paths:
            shown = self._shown(path)
            if shown:
                found[shown] = None
        return tuple(Evidence(source, text) for source, text in found)

    def _shown(self, path: str) -> tuple[str, str] | None:
        area = path.partition(".")[0].partition("[")[0]
        collected = self._collected.get(area)
        if collected is None:
            return None
        while path not in collected.provenance:
            end = max(path.rfind("."), path.rfind("["))
            if path.endswith('"]'):
                end = path.rfind('["')  # a key may hold dots
            if end <= 0:
                return None
            path = path[:end]
        return collected.provenance[path]

    def need(self, name: str) -> object:
        """An area's facts, collected where they are not yet, or a part of the rules, read once. Raises RuleError."""
        if name in AREAS:
            self.collect([name])
            return self.facts(name)
        if name not in PARTS:
            raise LookupError(f"{name} is neither an area of facts nor a part of the rules")
        if name not in self._parts:
            loaded = import_module(f"ascend_doctor.knowledge.{name}").load(self._rules)
            changes = self._profile.limits
            self._parts[name] = loaded.changed(changes, self._profile.place) if name == "limits" and changes else loaded
        return self._parts[name]

    def guarded(self, part: str, path: str, make: Callable[[], Any]) -> Any:
        """A fault of ours must not take the rest along."""
        try:
            return make()
        except Exception as error:
            detail = f"a fault of ascend-doctor: {part}: {type(error).__name__}: {error}"
            self.broken.append(detail)
            return Missing(Reason.FAILED, detail, path)


def _collected(area: str, host: Host) -> Collected[Any]:
    collected: Collected[Any] = import_module(f"ascend_doctor.facts.{area}").collect(host)
    return collected
