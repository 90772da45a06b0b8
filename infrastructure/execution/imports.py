"""Importing step functions from given folders, apart from every other module of the process.

Each `StepModules` imports afresh, under names of its own: `steps` becomes a module of a package
that only this object knows, so two plans may both have a `steps`. Neither `sys.path` nor the
plain names in `sys.modules` are touched, at any time, so attempts in several threads do not
meet. Inside such a module `import helpers` finds the sibling first, also when it runs late.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, Final, Self

from statelog.domain.errors import Invalid
from statelog.domain.execution.findings import Resolved, Unresolved
from statelog.infrastructure.json_values import escaped

_NUMBERS: Final = count(1)
_OPEN: Final[dict[str, StepModules]] = {}
_SHARED: Final = frozenset({"statelog", *sys.builtin_module_names})
"""Never taken from a folder: step modules use the same step API as the engine."""


class StepModules:
    """A `Resolver` over some folders, first one first.

    Only modules inside them can be named; what those import themselves is imported as usual. An
    interrupt during an import is raised on; any other failure is the answer. `close` forgets the
    modules, which functions still running do not need unless they import or pickle late.
    """

    def __init__(self, folders: Iterable[Path | str]) -> None:
        """Raises `Invalid` (`path`) for a folder that is not there or cannot be read."""
        self._folders = [str(_readable(Path(folder).resolve())) for folder in folders]
        self._root = f"statelog_steps_{next(_NUMBERS)}"
        self._ours: dict[str, bool] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}
        sys.modules[self._root] = _package(self._root, self._folders)
        _OPEN[self._root] = self
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)
        importlib.invalidate_caches()

    def __call__(self, module: str, attribute: str) -> Resolved | Unresolved:
        """Import a module and get one of its attributes."""
        name = f"{self._root}.{module}"
        try:
            if not all(part.isidentifier() for part in module.split(".")):
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)
            return Resolved(getattr(importlib.import_module(name), attribute))
        except Exception as error:
            self._unmask(error)
            searched = escaped(", ".join(self._folders))
            return Unresolved(error, module_loaded=name in sys.modules, searched=searched)

    def close(self) -> None:
        """Forget every module this object imported."""
        _OPEN.pop(self._root, None)
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{self._root}.")]:
            del sys.modules[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Where one of our modules is."""
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self._builtins)
        return spec

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` means inside our modules."""
        top = name.partition(".")[0]
        ours = level == 0 and self._is_ours(top)
        try:
            if not ours:
                return builtins.__import__(name, globals, locals, fromlist or (), level)
            if fromlist:
                return builtins.__import__(f"{self._root}.{name}", globals, locals, fromlist)
            importlib.import_module(f"{self._root}.{name}")
            return sys.modules[f"{self._root}.{top}"]
        except ImportError as error:
            self._unmask(error)
            raise

    def _is_ours(self, top: str) -> bool:
        if top not in self._ours:
            self._ours[top] = top not in _SHARED and self._finds(top)
        return self._ours[top]

    def _finds(self, top: str) -> bool:
        """Whether a folder has this module; a plain directory gives way to an installed one."""
        spec = PathFinder.find_spec(f"{self._root}.{top}", self._folders)
        if spec is None or spec.loader is not None:
            return spec is not None
        return top not in sys.modules and find_spec(top) is None

    def _unmask(self, error: Exception) -> None:
        """Let an error of an import name modules as their authors do."""
        if isinstance(error, ImportError):
            error.name = error.name and self._plain(error.name)
            error.msg = self._plain(str(error.msg))
        if isinstance(error, ImportError | AttributeError):
            error.args = tuple(
                self._plain(each) if isinstance(each, str) else each for each in error.args
            )

    def _plain(self, text: str) -> str:
        return text.replace(f"{self._root}.", "").replace(self._root, ".")


class _Finder:
    """Finds the modules of every open `StepModules`, and no other."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        owner = _OPEN.get(fullname.partition(".")[0])
        return None if owner is None else owner.spec(fullname, path)


class _Loader(SourceFileLoader):
    """Runs a module from its source as it is now, with an `import` of its own."""

    def __init__(self, name: str, path: str, builtins: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._builtins = builtins

    def get_code(self, fullname: str) -> CodeType:
        """Cached byte code is not used: its time stamp misses an edit within the same second."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)


def _package(name: str, folders: list[str]) -> ModuleType:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = folders
    return module_from_spec(spec)


def _readable(folder: Path) -> Path:
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise Invalid("path", f"{folder} is not a folder to read: {error.strerror}") from None
    return folder
