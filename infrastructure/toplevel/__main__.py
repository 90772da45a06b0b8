"""The console script, and `python -m statelog`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line with this process's arguments; raises `SystemExit` with its code."""
    try:
        from statelog.infrastructure.cli.app import main as command_line

        sys.exit(command_line())
    except KeyboardInterrupt:  # before a command has begun, which ends with this code itself
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
