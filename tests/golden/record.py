"""Freeze a store as a golden log: `python -m tests.golden.record STORE NAME`.

Writes NAME.db, a self-contained copy of the log, and NAME.json, the documents of every view at its
end. A golden log is recorded once, by a release's own demo, and never touched again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.testing import record_golden

HERE = Path(__file__).parent

if __name__ == "__main__":
    record_golden(sys.argv[1], HERE, sys.argv[2], views=all_views())
