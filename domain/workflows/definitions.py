"""Registered definitions: immutable documents, each the one event of a stream of its own (P18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.event import Event
from statelog.domain.lifecycle import Lifecycle
from statelog.domain.workflows.agreement import agree_on_plan, agree_on_workflow
from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.resources import EnvironmentVersion, Resource, Scope, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.shape import read, show
from statelog.domain.workflows.workflow import WorkflowVersion

Object = Mapping[str, Any]
Record = EnvironmentVersion | Resource | Scope | Topology | WorkflowVersion | SchedulePlan


class Registered(Event):
    """A definition was registered. `definition` is its JSON document."""

    definition: Mapping[str, Any]


class EnvironmentRegistered(Registered, name="workflows.environment.registered"):
    """An environment version was published, with its resources, runtimes and profiles."""


class ResourceRegistered(Registered, name="workflows.resource.registered"):
    """A resource was added to a published environment version."""


class ScopeRegistered(Registered, name="workflows.scope.registered"):
    """An execution scope was named."""


class ScopeUsed(Event, name="workflows.scope.used"):
    """A first schedule plan refers to the scope, which therefore stays."""

    schedule_plan_id: str


class ScopeRemoved(Event, name="workflows.scope.removed"):
    """An execution scope that no plan refers to was removed."""


class TopologyRegistered(Registered, name="workflows.topology.registered"):
    """A network topology was registered."""


class WorkflowRegistered(Registered, name="workflows.workflow.registered"):
    """A workflow version was registered."""


class SchedulePlanRegistered(Registered, name="workflows.schedule_plan.registered"):
    """A schedule plan was stored: it may be executed from now on."""


class DefinitionStatus(Enum):
    """Whether a definition is there; once it is, it stays as it is."""

    ABSENT, REGISTERED = "absent", "registered"


class ScopeStatus(Enum):
    """Whether a scope is there, and whether a plan refers to it."""

    ABSENT, REGISTERED, USED, REMOVED = "absent", "registered", "used", "removed"


@dataclass(frozen=True)
class Definition:
    """The document of a definition; `status` is that of its own kind."""

    status: DefinitionStatus = DefinitionStatus.ABSENT
    document: Object = field(default_factory=dict)


@dataclass(frozen=True)
class ScopeDefinition:
    """The document of a scope."""

    status: ScopeStatus = ScopeStatus.ABSENT
    document: Object = field(default_factory=dict)


def evolve(definition: Definition, event: Registered) -> Definition:
    """The definition after an event."""
    return changed(definition, document=event.definition)


def evolve_scope(
    scope: ScopeDefinition, event: ScopeRegistered | ScopeUsed | ScopeRemoved
) -> ScopeDefinition:
    """The scope after an event."""
    match event:
        case ScopeRegistered(definition=document):
            return changed(scope, document=document)
        case ScopeUsed() | ScopeRemoved():
            return scope
        case _:
            assert_never(event)


def _aggregate(name: str, event: type[Registered], stream: str = "") -> Aggregate[Definition]:
    absent, registered = DefinitionStatus.ABSENT, DefinitionStatus.REGISTERED
    table = Lifecycle(absent, [(event, absent, registered)], final={registered}, name=name)
    return Aggregate(name, Definition(), evolve, table, stream=stream)


ENVIRONMENT = _aggregate("environment", EnvironmentRegistered)
RESOURCE = _aggregate("resource", ResourceRegistered)
TOPOLOGY = _aggregate("topology", TopologyRegistered)
WORKFLOW = _aggregate("workflow", WorkflowRegistered)
SCHEDULE_PLAN = _aggregate("schedule_plan", SchedulePlanRegistered, "schedule-plan/{}")

SCOPE = Aggregate(
    "scope",
    ScopeDefinition(),
    evolve_scope,
    Lifecycle(
        ScopeStatus.ABSENT,
        [
            # event           from                    to
            (ScopeRegistered, ScopeStatus.ABSENT, ScopeStatus.REGISTERED),
            (ScopeRegistered, ScopeStatus.REMOVED, ScopeStatus.REGISTERED),
            (ScopeUsed, ScopeStatus.REGISTERED, ScopeStatus.USED),
            (ScopeRemoved, ScopeStatus.REGISTERED, ScopeStatus.REMOVED),
        ],
        final={ScopeStatus.USED},
        name="scope",
    ),
)


@dataclass(frozen=True)
class Kind:
    """One kind of definition: what people call it, where it is embedded, what must agree."""

    name: str
    key: str
    record: type[Any]
    aggregate: Aggregate[Any]
    event: type[Registered]
    agree: Callable[[Any, Any], None] = lambda given, registered: None


KINDS: Final[Mapping[type[Any], Kind]] = {
    kind.record: kind
    for kind in (
        Kind(
            "environment version",
            "environment",
            EnvironmentVersion,
            ENVIRONMENT,
            EnvironmentRegistered,
        ),
        Kind("resource", "resource", Resource, RESOURCE, ResourceRegistered),
        Kind("execution scope", "executionScope", Scope, SCOPE, ScopeRegistered),
        Kind("network topology", "networkTopology", Topology, TOPOLOGY, TopologyRegistered),
        Kind(
            "workflow", "workflow", WorkflowVersion, WORKFLOW, WorkflowRegistered, agree_on_workflow
        ),
        Kind(
            "schedule plan",
            "plan",
            SchedulePlan,
            SCHEDULE_PLAN,
            SchedulePlanRegistered,
            agree_on_plan,
        ),
    )
}
"""Kinds of definitions by record class, in the order in which they refer to each other."""

_THERE = frozenset({DefinitionStatus.REGISTERED, ScopeStatus.REGISTERED, ScopeStatus.USED})


def is_registered(definition: Definition | ScopeDefinition) -> bool:
    """Whether there is a definition to read."""
    return definition.status in _THERE


def record_of(kind: Kind, definition: Definition | ScopeDefinition) -> Any:
    """The registered record."""
    return read(kind.record, definition.document)


def register(
    definition: Definition | ScopeDefinition, *, record: Record, embedded: bool = False
) -> list[Registered]:
    """Register a definition whose rules were checked; nothing when the same is registered.

    An `embedded` one, which came along with something else, gives way to what is registered.
    Raises `Invalid` when the registered one differs: an embedded one in what P10 names, any other
    in anything.
    """
    kind = KINDS[type(record)]
    document = show(completed(record))
    if not is_registered(definition):
        return [kind.event(document)]
    if embedded:
        kind.agree(record, record_of(kind, definition))
    elif document != definition.document:
        raise Invalid("id", f"{kind.name} {record.id!r} is registered with other content")
    return []


def use(scope: ScopeDefinition, *, schedule_plan_id: str) -> list[ScopeUsed]:
    """Say that a plan refers to a scope; nothing when one did before.

    Raises `Invalid` when there is no such scope.
    """
    if not is_registered(scope):
        raise Invalid("executionScopeId", "no such execution scope")
    return [] if scope.status is ScopeStatus.USED else [ScopeUsed(schedule_plan_id)]


def remove(scope: ScopeDefinition) -> list[ScopeRemoved]:
    """Remove a scope; nothing when it is not there.

    Raises `Refused` (rule `scope_used`) once a schedule plan refers to it.
    """
    if scope.status is ScopeStatus.USED:
        raise Refused("a schedule plan refers to the scope", rule="scope_used")
    return [ScopeRemoved()] if is_registered(scope) else []
