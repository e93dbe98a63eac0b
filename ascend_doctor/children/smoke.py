"""Computes a reduced model on one device, step by step: ``smoke.py FOLDER PLAN``, the plan as JSON.

What it needs beside torch lies beside it and is imported under a name of its own: neither this folder nor the one above
comes onto the path, where the packages of the deployment are looked for.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import sys

ANSWER = 3
PACKAGE = "ascend_doctor_children"


def main() -> None:
    os.set_inheritable(ANSWER, False)
    here = os.path.dirname(os.path.abspath(__file__))
    folder, plan = sys.argv[1], json.loads(sys.argv[2])
    faulthandler.enable(file=os.dup(2))  # what is printed there later may go elsewhere for a while
    os.chdir(folder)
    del sys.path[0]  # the folder of this script
    load(here)
    importlib.import_module(f"{PACKAGE}.stages.order").run(plan, ANSWER)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # what modules do at the end of a process is not asked


def load(folder: str) -> None:
    """The folder as a package of that name."""
    place = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(PACKAGE, place, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
