"""The command as a user calls it: another process, another folder, stub tools first on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hosts import FOLDER

CHECKOUT = Path(__file__).parent.parent
DOCTOR = (sys.executable, "-m", "ascend_doctor")
TABLE = (FOLDER / "a2-healthy/commands/npu-smi-info.out").read_bytes()
SECONDS = 30
"""No call takes as long, whatever the tools do."""


class Command:
    """Calls the doctor in ``folder``, with the tools that were put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir()

    def environment(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Little of ours; a variable that is None is not set."""
        env: dict[str, str | None] = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(changes or {}),
        }
        return {name: value for name, value in env.items() if value is not None}

    def tool(self, name: str, script: str) -> None:
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    def npu_smi_prints(self, output: bytes, rc: int = 0) -> None:
        """The same for any arguments."""
        (self.folder / "output").write_bytes(output)
        self.tool("npu-smi", f"cat {self.folder}/output; exit {rc}")

    def __call__(
        self,
        *arguments: str | Path,
        env: Mapping[str, str | None] | None = None,
        before: Sequence[str] = (),
        command: Sequence[str] = DOCTOR,
        **how: Any,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*before, *command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            check=False,
            encoding="utf-8",
            **{"stdin": subprocess.DEVNULL, "timeout": SECONDS, **how},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def report(self, *arguments: str | Path, **how: Any) -> dict[str, Any]:
        """What ``preflight --format json`` says; its exit code must be that of the gate."""
        done = self("preflight", "--format", "json", *arguments, **how)
        report: dict[str, Any] = json.loads(done.stdout)
        assert done.stderr == ""
        assert done.returncode == report["gate"]["exit_code"]
        return report

    def each(self, calls: Sequence[Sequence[str | Path]], **how: Any) -> list[tuple[int, str, str]]:
        """Exit code, stdout and stderr of several calls, one after the other in one process, which is quicker."""
        done = self(
            json.dumps([[str(word) for word in call] for call in calls]), command=(*DOCTOR[:1], "-c", EACH), **how
        )
        assert (done.returncode, done.stderr) == (0, "")
        answers = [(code, out, err) for code, out, err in json.loads(done.stdout)]
        assert not any("Traceback" in err for _, _, err in answers)
        return answers


EACH = """
import contextlib, io, json, sys
from ascend_doctor.__main__ import main
answers = []
for call in json.loads(sys.argv[1]):
    sys.argv = ["ascend-doctor", *call]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


def findings(report: Mapping[str, Any], check: str) -> list[Mapping[str, Any]]:
    return [finding for finding in report["findings"] if finding["check"] == check]
