"""``--redact``, ``--redact-key`` and ``--redact-map``: what leaves the machine names nobody unless wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_doctor.cli.options import HOSTS, REDACTION
from ascend_doctor.cli.session import SessionError, say
from ascend_doctor.paths import data_folder

if TYPE_CHECKING:
    from ascend_doctor.engine.run import Run
    from ascend_doctor.host import Host
    from ascend_doctor.host.redact import Hiding
    from ascend_doctor.host.redact_identity import Redactor

SCHEMA = "ascend-doctor/redact-map/1"
MARK = "UNREDACTED"


class Redaction:
    """What the options of this call want; one set of pseudonyms for all that it writes."""

    def __init__(self) -> None:
        self._meta = click.get_current_context().meta
        wanted: Mapping[str, Any] = self._meta.get(REDACTION, {})
        self._wanted: bool | None = wanted.get("redact")
        self._key: bytes | None = wanted.get("redact_key")
        self._map: Path | None = wanted.get("redact_map")
        self._redactor: Redactor | None = None

    @property
    def _hosts(self) -> Sequence[Host]:
        """Those that this call has asked so far."""
        hosts: Sequence[Host] = self._meta.get(HOSTS, ())
        return hosts

    @property
    def of_files(self) -> bool:
        """Files are redacted unless the user says no."""
        return self._wanted is not False

    @property
    def of_stdout(self) -> bool:
        """What the user himself reads is redacted where he asks for it."""
        return self._wanted is True

    def hiding(self) -> Hiding:
        """For files: names, addresses and secrets, or secrets alone."""
        from ascend_doctor.host.redact import Hiding

        return self.redactor() if self.of_files else Hiding()

    def redactor(self) -> Redactor:
        """Made once: it knows the names that the host says of itself."""
        if self._redactor is None:
            from ascend_doctor.host.identities import of_host, of_this_process
            from ascend_doctor.host.pseudonyms import Pseudonyms
            from ascend_doctor.host.redact_identity import Redactor
            from ascend_doctor.host.redaction_key import key_of
            from ascend_doctor.knowledge.redaction import PublicNames

            key = self._key or key_of(self._hosts[0] if self._hosts else None)
            self._redactor = Redactor(Pseudonyms(key), PublicNames([data_folder("rules")]))
            for host in self._hosts:
                self._redactor.add(of_host(host))
            self._redactor.add(of_this_process())
        return self._redactor

    def printed(self, run: Run) -> Run:
        """For stdout: secrets are always hidden."""
        if self.of_stdout:
            return self._with_note(self._hidden(run, self.redactor()), "redacted")
        from ascend_doctor.host.redact import Hiding

        return self._hidden(run, Hiding())

    def written(self, run: Run) -> Run:
        """For files, with a note that says what was done to them."""
        hidden = self._hidden(run, self.hiding())
        return self._with_note(hidden, "redacted" if hidden.redacted == "identity" else "unredacted")

    def _hidden(self, run: Run, hide: Hiding) -> Run:
        from ascend_doctor.engine.hidden_run import hidden_run

        documents = [getattr(host, "document", None) for host in self._hosts]
        before = {getattr(document, "redacted", "none") for document in documents}
        return hidden_run(run, hide, before.pop() if len(before) == 1 else "none")

    def _with_note(self, run: Run, kind: str) -> Run:
        from ascend_doctor.engine.findings import Note
        from ascend_doctor.knowledge.notes import note_text

        others = tuple(note for note in run.notes if note.kind not in ("redacted", "unredacted"))
        return replace(run, notes=(Note(kind, note_text([data_folder("rules")], kind, {})), *others))

    def place(self, path: Path) -> Path:
        """``report.html``, or ``report.UNREDACTED.html`` where names are kept."""
        if self.of_files or MARK in path.name:
            return path
        suffix = ".tar.gz" if path.name.endswith(".tar.gz") else path.suffix
        return path.with_name(f"{path.name[: len(path.name) - len(suffix)]}.{MARK}{suffix}")

    def check_map(self, snapshot: Path) -> None:
        """Raises SessionError for a map that would travel with what it gives away."""
        if self._map is not None and snapshot.absolute() in (self._map.absolute(), *self._map.absolute().parents):
            raise SessionError(f"--redact-map: {self._map} would be given away with {snapshot}; choose another place")

    def save_map(self, quiet: bool) -> None:
        """For the owner alone: who stands behind each pseudonym. Raises SessionError."""
        if self._map is None:
            return
        if self._redactor is None:
            say(f"nothing was redacted: {self._map} is not written", quiet)
            return
        names = [
            {"kind": kind, "name": name, "pseudonym": pseudonym}
            for kind, name, pseudonym in self._redactor.pseudonyms.entries()
        ]
        text = json.dumps({"schema": SCHEMA, "names": names}, indent=1) + "\n"
        try:
            descriptor = os.open(self._map, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError as error:
            why = error.strerror or error
            raise SessionError(f"{self._map}: the map cannot be written: {why}; choose another place") from None
        say(f"written: {self._map} (who is who; keep it to yourself)", quiet)
