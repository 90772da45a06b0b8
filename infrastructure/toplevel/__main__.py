"""The console script, and `python -m statelog`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line with this process's arguments; raises `SystemExit` with its code."""
    from statelog.infrastructure.cli.app import main as command_line

    sys.exit(command_line())


if __name__ == "__main__":
    main()
