"""What of jobs may be erased, and what is kept for later decisions."""

from __future__ import annotations

from typing import Final

from statelog.domain.aggregate import changed
from statelog.domain.erasure import Erasable
from statelog.domain.queue.job import JOB, Job


def _ended(job: Job) -> Job:
    """An ended job is never worked on again, so nobody reads its payload."""
    return changed(job, payload={})


ERASABLE: Final = (Erasable(JOB, remains=_ended),)
"""Jobs that have ended."""
