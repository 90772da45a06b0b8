"""The body of a request for a planning session, and the problem it stands for (1.2, P3, P4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.errors import Invalid, Malformed, NotFound
from statelog.domain.ids import encode_part
from statelog.domain.planning.problem import Problem, resolve
from statelog.domain.planning.session import Selection
from statelog.domain.workflows.checks import LONGEST_ID
from statelog.domain.workflows.resources import EnvironmentVersion, Scope, Topology
from statelog.domain.workflows.shape import read
from statelog.infrastructure.workflows.definitions import Definitions

IGNORED: Final = frozenset(
    {
        *("status", "progress", "candidateCount", "failureReason"),
        *("selectedCandidateId", "selectedPlanId", "createdAt", "startedAt", "completedAt"),
    }
)
"""Fields of a session that are ours to say, whatever a client sends (P4)."""

LONGEST: Final = LONGEST_ID - len("-0123456789ab")
"""Characters of a session's id: that of a plan which is chosen in it adds some (3.7)."""


@dataclass(frozen=True)
class SessionRequest:
    """What is asked for. Limits <= 0 are none; `configuration` is kept as it is (P14)."""

    id: str
    workflow_version_id: str = ""
    execution_scope_id: str = ""
    network_topology_id: str = ""
    algorithms: tuple[Selection, ...] = ()
    deadline_seconds: float = 0.0
    budget: float = 0.0
    configuration: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, document: Any) -> SessionRequest:
        """The request of a JSON document. Raises `Malformed` naming the field.

        What is not there is empty, and is for `Sessions.create` to refuse.
        """
        if not isinstance(document, dict):
            raise Malformed("", "must be an object")
        asked = {name: value for name, value in document.items() if name not in IGNORED}
        return read(cls, {"id": "", **asked})


def problem_of(definitions: Definitions, request: SessionRequest) -> Problem:
    """Everything the request names, as it is registered now.

    Raises `Invalid` naming the field that is empty, or names what is not there.
    """
    _checked_id(request.id)
    workflow = _known(definitions.workflow, "workflowVersionId", request.workflow_version_id)
    scope = _known(definitions.scope, "executionScopeId", request.execution_scope_id)
    topology = _known(definitions.topology, "networkTopologyId", request.network_topology_id)
    _checked_owner(topology, scope)
    return resolve(
        workflow,
        scope,
        topology,
        _environments(definitions, scope),
        deadline_seconds=request.deadline_seconds,
        budget=request.budget,
        configuration=request.configuration,
    )


def _checked_id(id: str) -> None:
    if not id:
        raise Invalid("id", "must not be empty")
    if len(id) > LONGEST:
        raise Invalid("id", f"has more than {LONGEST} characters")
    encode_part(id)


def _known(find: Any, field: str, id: str) -> Any:
    if not id:
        raise Invalid(field, "must not be empty")
    try:
        return find(id)
    except NotFound as error:
        raise Invalid(field, f"there is {error}") from None


def _checked_owner(topology: Topology, scope: Scope) -> None:
    owner = topology.execution_scope_id
    if owner != scope.id:
        raise Invalid("networkTopologyId", f"{topology.id!r} belongs to scope {owner!r}")


def _environments(definitions: Definitions, scope: Scope) -> tuple[EnvironmentVersion, ...]:
    try:
        return definitions.environments(scope)
    except NotFound as error:
        raise Invalid("executionScopeId", f"{scope.id!r} names {error.id!r}: {error}") from None
