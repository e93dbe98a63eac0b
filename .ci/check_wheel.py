"""Opens a wheel: only our package at its top, and the rules that the package reads in it."""

from __future__ import annotations

import sys
import zipfile

PARTS = {
    "ascend_doctor/_data/checks/": ".yaml",
    "ascend_doctor/_data/rules/": ".yaml",
    "ascend_doctor/_data/reports/": ".j2",
    "ascend_doctor/_data/reports/example/": "snapshot.json",
}


def main(path: str) -> int:
    """Prints what is wrong; the exit code says whether anything is."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
    wrong = []
    tops = {name.split("/")[0] for name in names}
    if not all(top == "ascend_doctor" or top.endswith(".dist-info") for top in tops):
        wrong.append(f"more than ascend_doctor at the top: {sorted(tops)}")
    for folder, suffix in PARTS.items():
        if not any(name.startswith(folder) and name.endswith(suffix) for name in names):
            wrong.append(f"nothing like {folder}*{suffix}")
    print("\n".join(wrong) or f"{path}: {len(names)} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
