"""The command ``ascend-doctor``: answers ``--version`` before it imports anything else."""

import sys


def main() -> int:
    """Runs the command line; returns the exit code (DESIGN section 8)."""
    if sys.argv[1:] == ["--version"]:
        from ascend_doctor import __version__

        print(f"ascend-doctor {__version__}")
        return 0
    from ascend_doctor.cli import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
