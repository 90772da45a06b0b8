"""A step may fork; only the process that called its function goes on as the engine."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn


class alone:
    """Ends a forked child that gets out of the block, by whatever way, as its own program's end.

    It would otherwise write to the attempt a second time, and its parent would be fenced.
    """

    __slots__ = ("_own",)

    def __enter__(self) -> None:
        self._own = os.getpid()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if os.getpid() != self._own:
            _leave(error)


def _leave(error: BaseException | None) -> NoReturn:
    code = 0
    with suppress(BaseException):
        if isinstance(error, SystemExit):
            code = _code(error.code)
        elif error is not None:
            code = 1
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _code(given: object) -> int:
    if given is None or isinstance(given, int):
        return (given or 0) & 0xFF
    print(given, file=sys.stderr)
    return 1
