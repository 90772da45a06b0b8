"""Files of workflows and platforms, read and registered together (6, P20)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from statelog.domain.errors import Invalid
from statelog.domain.workflows.definitions import Record
from statelog.domain.workflows.platform import FOUR_MACHINES, Platform, read_platform
from statelog.domain.workflows.portable import read_portable
from statelog.domain.workflows.resources import EnvironmentVersion, Scope, Topology
from statelog.domain.workflows.wfformat import read_wfformat
from statelog.domain.workflows.workflow import WorkflowVersion
from statelog.infrastructure.documents import JSON_LIMIT, read_document

Format = Literal["portable", "wfformat"]
LARGE: Final = 256 * 1024
"""Bytes from which on reading a file takes long enough to say so."""


@dataclass(frozen=True)
class Import:
    """The definitions that a file stands for, and what of it was ignored or is not known.

    Without a platform there is only the workflow.
    """

    form: Format
    workflow: WorkflowVersion
    environments: tuple[EnvironmentVersion, ...] = ()
    scope: Scope | None = None
    topology: Topology | None = None
    warnings: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """All of it, to be registered in one commit."""
        ground = (self.scope, self.topology)
        return (*self.environments, *(each for each in ground if each), self.workflow)

    @property
    def ids(self) -> dict[str, Any]:
        """The ids that a session asks for, as its body names them, and those of environments."""
        ids: dict[str, Any] = {"workflowVersionId": self.workflow.id}
        if self.scope and self.topology:
            ids["executionScopeId"] = self.scope.id
            ids["networkTopologyId"] = self.topology.id
            ids["environmentVersionIds"] = [each.id for each in self.environments]
        return ids


def read_import(
    path: Path,
    *,
    form: Format | None = None,
    name: str | None = None,
    resources: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Import:
    """A workflow file, with the platform in `resources` to plan it on.

    Without `form` a document with a `schemaVersion` is WfFormat. A WfFormat file is named by its
    name without suffix unless `name` says how, and planned on four built-in machines by default.
    Raises `Invalid` naming the file and the place in it.
    """
    if path.is_file() and path.stat().st_size > LARGE:
        tell(f"reading {path}")
    document = read_document(path, "", JSON_LIMIT)
    if type(document) is dict and "environment" in document and "spec" not in document:
        raise Invalid(str(path), "is an environment, not a workflow: give it with --resources")
    chosen = form or _form(document)
    platform = None if resources is None else read_platform_file(resources)
    if platform is not None and not platform.links and len(platform.environment.resources) > 1:
        tell(f"warning: {resources}: has no links, so no resource reaches another")
    try:
        if chosen == "wfformat":
            return _wfformat(document, path.stem if name is None else name, platform)
        if name is not None:
            raise Invalid("--name", "is for WfFormat files; a portable workflow has a `name`")
        return _portable(document, platform)
    except Invalid as error:
        raise Invalid(f"{path}: {error.field or 'document'}", error.why) from None


def import_document(document: Any, *, name: str | None = None) -> Import:
    """A portable or WfFormat document that came by itself, which has no platform of its own.

    A WfFormat document is named by its `name` unless `name` says how, and planned on the built-in
    machines. Raises `Invalid` naming the place in it.
    """
    if _form(document) == "portable":
        return _portable(document, None)
    own = document.get("name")
    return _wfformat(document, name or (own if type(own) is str else ""), None)


def _form(document: Any) -> Format:
    return "wfformat" if type(document) is dict and "schemaVersion" in document else "portable"


def _wfformat(document: Any, name: str, platform: Platform | None) -> Import:
    instance = read_wfformat(document, name, platform or FOUR_MACHINES)
    return Import(
        "wfformat",
        instance.workflow,
        (instance.environment, instance.measured),
        instance.scope,
        instance.topology,
        instance.warnings,
    )


def _portable(document: Any, platform: Platform | None) -> Import:
    workflow, warnings = read_portable(document)
    if platform is None:
        return Import("portable", workflow, warnings=warnings)
    scope, topology = platform.ground(workflow.id)
    return Import("portable", workflow, (platform.environment,), scope, topology, warnings)


def read_platform_file(path: Path) -> Platform:
    """An environment bundle in a file, with `links`. Raises `Invalid` naming file and place."""
    document = read_document(path, "", JSON_LIMIT)
    if type(document) is dict and "spec" in document:
        raise Invalid(str(path), "is a workflow, not an environment")
    try:
        return read_platform(document)
    except Invalid as error:
        raise Invalid(f"{path}: {error.field or 'document'}", error.why) from None
