"""Several devices of one host compute together: ``ranks.py FOLDER PLAN``, the plan as JSON.

The process that is started so starts one for each rank (the same script; its number and the descriptor it answers on
are two more arguments) in its own group, has them go through the same steps together, and tells of each step which rank
it was that did not.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import runpy
import sys

ANSWER = 3


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    folder, plan = sys.argv[1], json.loads(sys.argv[2])
    os.chdir(folder)
    del sys.path[0]  # the folder of this script
    smoke = runpy.run_path(os.path.join(here, "smoke.py"))
    smoke["load"](here)
    if len(sys.argv) > 3:
        rank, answer = map(int, sys.argv[3:5])
        importlib.import_module(f"{smoke['PACKAGE']}.collectives.rank").run(plan, rank, answer)
    else:
        os.set_inheritable(ANSWER, False)
        faulthandler.enable(file=os.dup(2))
        launcher = importlib.import_module(f"{smoke['PACKAGE']}.collectives.launcher")
        launcher.run(plan, [sys.executable, os.path.abspath(__file__), folder, sys.argv[2]], ANSWER)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # what modules do at the end of a process is not asked


if __name__ == "__main__":
    main()
