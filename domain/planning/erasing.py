"""What of sessions may be erased, and what is kept for later decisions."""

from __future__ import annotations

from typing import Final

from statelog.domain.erasure import Erasable
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
from statelog.domain.planning.session import SESSION

_SESSION: Final = Erasable(SESSION)

ERASABLE: Final = (_SESSION, Erasable(ALGORITHM_RUN, beside=(_SESSION,)))
"""Sessions that have ended, and their runs. A candidate cannot be selected afterwards."""
