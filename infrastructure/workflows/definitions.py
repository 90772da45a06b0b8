"""Definitions in a journal: read by id, checked against each other, registered together (P10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from statelog.domain.aggregate import Change, Loaded, changed
from statelog.domain.errors import Conflict, Invalid, NotFound
from statelog.domain.workflows.checks import (
    check_environment,
    check_id,
    check_resource,
    check_scope,
    check_topology,
    check_workflow,
)
from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.definitions import (
    KINDS,
    SCOPE,
    Kind,
    Record,
    ResourceRegistered,
    is_registered,
    record_of,
    register,
    remove,
    use,
)
from statelog.domain.workflows.resources import EnvironmentVersion, Resource, Scope, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.shape import read
from statelog.domain.workflows.validate import validate
from statelog.domain.workflows.workflow import WorkflowVersion
from statelog.infrastructure.journal import TRIES, Journal

R = TypeVar("R")


class Definitions:
    """The definitions of one journal. Records are immutable; readers raise `NotFound`."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def environment(self, id: str) -> EnvironmentVersion:
        """An environment version, with the resources that were added to it since."""
        return _Desk(self.journal).get(EnvironmentVersion, id)

    def scope(self, id: str) -> Scope:
        """An execution scope that was not removed."""
        return _Desk(self.journal).get(Scope, id)

    def topology(self, id: str) -> Topology:
        """A network topology."""
        return _Desk(self.journal).get(Topology, id)

    def workflow(self, id: str) -> WorkflowVersion:
        """A workflow version."""
        return _Desk(self.journal).get(WorkflowVersion, id)

    def schedule_plan(self, id: str) -> SchedulePlan:
        """A schedule plan with its assignments."""
        return _Desk(self.journal).get(SchedulePlan, id)

    def environments(self, scope: Scope) -> tuple[EnvironmentVersion, ...]:
        """The environment versions of a scope, with all their resources."""
        desk = _Desk(self.journal)
        return tuple(desk.get(EnvironmentVersion, id) for id in scope.environment_version_ids)

    def registration(self, record: Record) -> Change[Any]:
        """The change that registers one record that came along with something else (P10).

        It has no events when the id is registered. Of a schedule plan it does not keep the scope:
        `registrations` does. Raises as `registrations` does.
        """
        return self.registrations(record)[0]

    def registrations(self, *records: Record, embedded: bool = True) -> tuple[Change[Any], ...]:
        """The changes that register records, which may refer to each other, in one commit.

        Those of the records come first, in their order. Then, for each plan, a change of its scope,
        so that a scope cannot be removed under it. Raises `Invalid` naming the field for a record
        that breaks a rule or refers to what is neither registered nor among them, and for an id
        that is registered with another content. Of `embedded` records that is only what P10 says,
        and fields are named below `workflow`, `plan` and so on.
        """
        desk = _Desk(self.journal, records, embedded=embedded)
        changes = {id(record): desk.change(record) for record in desk.ordered}
        return (*(changes[id(record)] for record in records), *desk.uses())

    def register(self, *records: Record, actor: str, embedded: bool = False) -> bool:
        """Register records in one commit; whether there was anything to register.

        Raises `Invalid` as `registrations` does; unless they are `embedded`, also when a registered
        one differs in anything.
        """
        for tries_left in reversed(range(TRIES)):
            changes = self.registrations(*records, embedded=embedded)
            if not any(change.events for change in changes):
                return False
            try:
                self.journal.commit(*changes, actor=actor)
            except Conflict:
                if not tries_left:
                    raise
            else:
                return True
        raise AssertionError("unreachable")

    def remove_scope(self, id: str, *, actor: str) -> None:
        """Remove a scope. Raises `NotFound`, and `Refused` once a schedule plan refers to it."""
        self.scope(id)
        self.journal.execute(SCOPE, id, remove, actor=actor)


_ORDER: Final = tuple(KINDS)


class _Desk:
    """What is registered, and what is about to be, as one: records are checked against both."""

    def __init__(
        self, journal: Journal, records: Iterable[Record] = (), *, embedded: bool = True
    ) -> None:
        self._journal = journal
        self._embedded = embedded
        self.ordered = sorted(records, key=lambda record: _ORDER.index(type(record)))
        self._coming: dict[tuple[type[Any], str], Record] = {}
        self._loaded: dict[tuple[type[Any], str], Loaded[Any]] = {}
        self._records: dict[tuple[type[Any], str], Any] = {}
        self._singles: tuple[Resource, ...] | None = None

    def get(self, kind: type[R], id: str) -> R:
        """A record as it is registered, else as it is coming. Raises `NotFound`."""
        found = self.find(kind, id)
        if found is None:
            raise NotFound(KINDS[kind].name, id)
        return found

    def find(self, kind: type[R], id: str) -> R | None:
        """A record, None when there is none."""
        key = (kind, id)
        if key not in self._records:
            loaded = self.loaded(KINDS[kind], id) if id else None
            if loaded is not None and is_registered(loaded.state):
                self._records[key] = self._whole(record_of(KINDS[kind], loaded.state))
            else:
                return cast("R | None", self._coming.get(key))
        return cast("R", self._records[key])

    def loaded(self, kind: Kind, id: str) -> Loaded[Any]:
        """The instance as it was read first."""
        key = (kind.record, id)
        if key not in self._loaded:
            self._loaded[key] = self._journal.load(kind.aggregate, id)
        return self._loaded[key]

    def _whole(self, record: Any) -> Any:
        if not isinstance(record, EnvironmentVersion):
            return record
        added = tuple(each for each in self._added() if each.environment_version_id == record.id)
        return changed(record, resources=(*record.resources, *added))

    def _added(self) -> tuple[Resource, ...]:
        """The resources that were registered by themselves."""
        if self._singles is None:
            names = {ResourceRegistered.stored_name}
            events = (each.event for each in self._journal.history("resource", names=names))
            self._singles = tuple(
                read(Resource, cast("ResourceRegistered", event).definition) for event in events
            )
        return self._singles

    def change(self, record: Record) -> Change[Any]:
        """The change that registers a record, whose rules are checked if it is new."""
        kind = KINDS[type(record)]
        try:
            return self._change(kind, record)
        except Invalid as error:
            if not self._embedded:
                raise
            raise Invalid(f"{kind.key}.{error.field}", error.why) from None

    def _change(self, kind: Kind, record: Record) -> Change[Any]:
        check_id(record.id, "id")
        key = (kind.record, record.id)
        if key in self._coming:
            raise Invalid("id", f"{kind.name} {record.id!r} is given twice")
        self._coming[key] = completed(record)
        loaded = self.loaded(kind, record.id)
        if not is_registered(loaded.state):
            _CHECKS[kind.record](self, record)
        return loaded.decide(register, record=record, embedded=self._embedded)

    def uses(self) -> Iterable[Change[Any]]:
        """For each scope of a plan, the change that keeps it, or a guard of it."""
        plans = [record for record in self.ordered if isinstance(record, SchedulePlan)]
        firsts = {plan.execution_scope_id: plan.id for plan in reversed(plans)}
        for scope_id, plan_id in firsts.items():
            scope = self._coming.get((Scope, scope_id))
            loaded = self.loaded(KINDS[Scope], scope_id)
            if scope is None or is_registered(loaded.state):
                yield loaded.decide(use, schedule_plan_id=plan_id)
            else:
                registered = loaded.decide(register, record=scope)
                yield registered.after.decide(use, schedule_plan_id=plan_id)

    def check_environment(self, record: EnvironmentVersion) -> None:
        check_environment(record)

    def check_resource(self, record: Resource) -> None:
        owner = self.find(EnvironmentVersion, record.environment_version_id)
        if owner is None:
            why = f"no environment version {record.environment_version_id!r}"
            raise Invalid("environmentVersionId", why)
        check_resource(record, "", owner.id)
        if any(each.id == record.id for each in owner.resources):
            raise Invalid("id", f"environment version {owner.id!r} has a resource {record.id!r}")

    def check_scope(self, record: Scope) -> None:
        named = dict.fromkeys(record.environment_version_ids)
        found = [self.find(EnvironmentVersion, id) for id in named if id]
        check_scope(record, {each.id: [r.id for r in each.resources] for each in found if each})

    def check_topology(self, record: Topology) -> None:
        known = self.find(Scope, record.execution_scope_id)
        check_topology(record, () if known is None else (known.id,))

    def check_workflow(self, record: WorkflowVersion) -> None:
        check_workflow(record)

    def check_plan(self, plan: SchedulePlan) -> None:
        workflow = self._needed(WorkflowVersion, plan.workflow_version_id, "workflowVersionId")
        scope = self._needed(Scope, plan.execution_scope_id, "executionScopeId")
        topology = None
        if plan.network_topology_id:
            topology = self._needed(Topology, plan.network_topology_id, "networkTopologyId")
        resources = [
            resource
            for version_id in scope.environment_version_ids
            for resource in self.get(EnvironmentVersion, version_id).resources
        ]
        validate(plan, workflow, resources, scope, topology)

    def _needed(self, kind: type[R], id: str, field: str) -> R:
        found = self.find(kind, id)
        if found is None:
            raise Invalid(field, f"no {KINDS[kind].name} {id!r}")
        return found


_CHECKS: Final[Mapping[type[Any], Any]] = {
    EnvironmentVersion: _Desk.check_environment,
    Resource: _Desk.check_resource,
    Scope: _Desk.check_scope,
    Topology: _Desk.check_topology,
    WorkflowVersion: _Desk.check_workflow,
    SchedulePlan: _Desk.check_plan,
}
