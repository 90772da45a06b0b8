"""Views: projections kept up with the log, in a file that can always be made again from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, TypeVar

from statelog.domain.errors import NotFound, StoreError
from statelog.infrastructure.catch_up import catch_up
from statelog.infrastructure.follow import POLL_S
from statelog.infrastructure.json_values import parse
from statelog.infrastructure.verify import Difference, differences
from statelog.infrastructure.view import Log, View
from statelog.infrastructure.view_rebuild import Progress, rebuild
from statelog.infrastructure.view_status import ViewStatus, is_newer, newer, status_of
from statelog.infrastructure.view_store import ViewStore
from statelog.projections.projection import Projection

T = TypeVar("T")

PAUSE_S = 0.005
"""Between two catch-ups of a follower: what comes meanwhile is folded in one transaction."""


class Views:
    """The views of one journal. Threads may share it, and a forked child may use its parent's.

    They are kept in `path` (default: `views_path` of the journal), or in memory for a
    journal in memory and wherever the log or the file of views cannot be written. Every read
    catches up first. An event that a view cannot fold stops that view alone, at the position
    before it, until it can be folded. Raises `StoreError` for a file that is not one of views.
    """

    def __init__(
        self,
        journal: Log,
        projections: Iterable[Projection[Any]],
        path: Path | None = None,
        *,
        patience: float = 30.0,
    ) -> None:
        self.journal = journal
        self.path = path or journal.views_path
        self._patience = patience
        self._guard, self._pid = RLock(), os.getpid()
        store = self._open()
        self._stores = [store]
        try:
            self._views = _named(View(projection, store) for projection in projections)
        except BaseException:
            store.close()
            raise

    def _open(self) -> ViewStore:
        if self.path is not None and not self.journal.read_only:
            try:
                return ViewStore(self.path, patience=self._patience)
            except StoreError as error:
                if error.kind != "read-only":
                    raise
        return ViewStore(None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all views."""
        return tuple(self._views)

    @property
    def stored(self) -> bool:
        """Whether the views are kept in the file."""
        return self._stores[0].path is not None

    def catch_up(self, *names: str) -> None:
        """Fold what is new in the log into these views (default: all).

        A view that an event stops does not stop the others; `status` says where and why. Raises
        `NotFound` for a name nobody declared, and `StoreError`.
        """
        with self._turn():
            for view in self._chosen(*names):
                self._catch_up(view)

    def retry(self, *names: str) -> None:
        """Try again where an event stopped these views (default: all); `status` says how it went.

        That makes sense after a change to what they are folded by; a new process tries by itself.
        Raises `NotFound`, `StoreError`.
        """
        with self._turn():
            for view in self._chosen(*names):
                view.parked = None
                self._catch_up(view)

    def wait(self, name: str, position: int, timeout_s: float = 10.0) -> bool:
        """Wait until a view has seen a position: that of a commit of yours, say.

        What is in the log is folded here and now, so it is only waited for what others have yet
        to commit. False when the time is up, or an event stops the view before.
        """
        until = monotonic() + timeout_s
        with self.journal.follow(after=self.journal.head()) as follower:
            while not self._has_seen(name, position):
                left = until - monotonic()
                if left <= 0 or self._is_parked(name):
                    return False
                follower.wait(min(left, POLL_S))
                follower.position = self.journal.head()
        return True

    def follow(self, stopped: Callable[[], bool], *names: str) -> None:
        """Keep these views (default: all) at the end of the log until `stopped` says so.

        It is asked at least once a second. Each event has its effect once, whatever dies when: the
        position moves in the transaction of the rows. A file that others keep busy is tried again.
        Raises `NotFound`, `StoreError`.
        """
        with self.journal.follow(after=self.journal.head()) as follower:
            while not stopped():
                follower.position = self.journal.head()
                try:
                    self.catch_up(*names)
                except StoreError as error:
                    if not error.retryable:
                        raise
                    follower.position = -1
                sleep(PAUSE_S)
                while not (follower.wait() or stopped()):
                    pass

    def get(self, name: str, key: str) -> dict[str, Any] | None:
        """The document of one row, caught up; None when there is none or it is not shown."""
        with self._turn():
            view = self._caught_up(name)
            text = self._stored(view, lambda store: store.document(view.format, key))
        return None if text is None else parse(text)

    def rows(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Key and document of each row that is shown, by key, caught up when it begins."""
        for key, text in self._pages(name, "document"):
            if text is not None:
                yield key, parse(text)

    def states(self, name: str) -> Iterator[tuple[str, Any]]:
        """Key and folded state of each row, shown or not, by key, caught up when it begins."""
        view = self._view(name)
        for key, text in self._pages(name, view.format.state_column):
            yield key, view.format.state(text or "null")

    def rebuild(self, name: str | None = None, progress: Progress | None = None) -> None:
        """Make a view (default: all) anew from the log.

        Its old rows stay readable, and go on, until the new ones replace them in one transaction.
        Raises `StoreError` newer for one that a newer release keeps.
        """
        with self._turn():
            for view in self._chosen(*([] if name is None else [name])):
                view.store.refresh()
                if is_newer(view) or not rebuild(view, self.journal, progress):
                    raise newer(view)
                self._catch_up(view)

    def verify(self, name: str | None = None) -> list[Difference]:
        """Compare each stored row of a view (default: all) with its rebuild, byte by byte.

        The views catch up first, unless they are not ours to write: then the file is compared as
        it is, view by view at its own position, leaving out those of another version.
        """
        with self._turn():
            chosen = self._chosen(*([] if name is None else [name]))
            with self._file() as file:
                if file is not None:
                    return [found for view in chosen for found in self._differences(view, file)]
            for view in chosen:
                self._catch_up(view)
            return [found for view in chosen for found in self._differences(view, view.store)]

    @contextmanager
    def _file(self) -> Iterator[ViewStore | None]:
        """The file that is there and not ours to write; None when there is no such file."""
        if self.stored or self.path is None or not self.path.exists():
            yield None
            return
        file = ViewStore(self.path, patience=self._patience, read_only=True)
        try:
            yield file
        finally:
            file.close()

    def _differences(self, view: View[Any], store: ViewStore) -> Iterator[Difference]:
        with store.reading():
            mark = store.mark(view.name)
            if mark and mark.version == view.version and store.fits(view.format):
                stored = store.rows(view.format)
                yield from differences(view.format, self.journal, mark.position, stored)

    def status(self) -> list[ViewStatus]:
        """Where each view is now, without catching up; in the file also when it is only read."""
        with self._turn(), self._file() as file:
            head = self.journal.head()
            return [status_of(view, file or view.store, head) for view in self._views.values()]

    def close(self) -> None:
        """Close the file of views; the journal stays open."""
        with self._turn():
            for store in self._stores:
                store.close()

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._pid != os.getpid():
            # In the parent another thread may have held the guard when this child was forked.
            self._guard, self._pid = RLock(), os.getpid()
        with self._guard:
            yield

    def _view(self, name: str) -> View[Any]:
        if name not in self._views:
            raise NotFound("view", name)
        return self._views[name]

    def _chosen(self, *names: str) -> list[View[Any]]:
        return [self._view(name) for name in names or self._views]

    def _caught_up(self, name: str) -> View[Any]:
        view = self._view(name)
        self._catch_up(view)
        return view

    def _has_seen(self, name: str, position: int) -> bool:
        with self._turn():
            view = self._caught_up(name)
            mark = view.store.mark(name)
        return mark is not None and mark.position >= position

    def _is_parked(self, name: str) -> bool:
        with self._turn():
            view = self._view(name)
            return view.parked is not None and view.store.mark(name) == view.parked

    def _catch_up(self, view: View[Any]) -> None:
        view.store.refresh()
        if not catch_up(view, self.journal):
            # A newer release keeps this view in the file: it is folded in memory beside that.
            view.store = ViewStore(None)
            self._stores.append(view.store)
            catch_up(view, self.journal)

    def _pages(self, name: str, column: str) -> Iterator[tuple[str, str | None]]:
        with self._turn():
            view = self._caught_up(name)
        last: str | None = None
        while True:
            with self._turn():
                page = self._stored(view, partial(_page, view, column, last))
            if not page:
                return
            last = page[-1][0]
            yield from page

    def _stored(self, view: View[Any], read: Callable[[ViewStore], T]) -> T:
        """What is read of rows that are ours: at any time a newer release may replace them."""
        while True:
            with view.store.reading():
                mark = view.store.mark(view.name)
                if mark and mark.version == view.version and view.store.fits(view.format):
                    return read(view.store)
            self._catch_up(view)


def _page(
    view: View[Any], column: str, after: str | None, store: ViewStore
) -> list[tuple[str, str | None]]:
    return store.page(view.format, column, after)


def _named(views: Iterable[View[Any]]) -> dict[str, View[Any]]:
    named: dict[str, View[Any]] = {}
    for view in views:
        if named.setdefault(view.name, view) is not view:
            raise ValueError(f"two views are called {view.name}")
    return named
