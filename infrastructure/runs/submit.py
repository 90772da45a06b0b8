"""Accepting a run: its job, its plan, and what is not registered yet, in one commit (P2, P10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from statelog.domain.aggregate import Change, Loaded, changed
from statelog.domain.errors import Conflict, Invalid, Malformed, NotFound
from statelog.domain.queue.job import JOB, Job, keyed_id
from statelog.domain.runs.request import RunRequest, RunSpec, checked
from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.definitions import Record
from statelog.domain.workflows.environments import embedded_environments
from statelog.domain.workflows.resources import EnvironmentVersion
from statelog.domain.workflows.shape import ABSENT, read, show
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.workflows.definitions import Definitions

REQUESTED: Final = "execution.run.requested"
CATEGORY: Final = "execution"

T = TypeVar("T")


def job_id_of(run_id: str) -> str:
    """The id of the job that asks for a run."""
    return keyed_id(_key(run_id))


def _key(run_id: str) -> str:
    return f"execution-run:{run_id}"


def submit(journal: Journal, request: RunRequest, *, actor: str) -> Loaded[Job]:
    """Ask for a run; the first job when the same run was asked for before, whatever for.

    Raises `Invalid` naming the field: as `checked` does, for a definition that differs from the
    registered one of its id (P10), and for one that breaks a rule. Then nothing is stored.
    """
    checked(request)
    for tries_left in reversed(range(TRIES)):
        job = journal.load(JOB, job_id_of(request.run.id))
        if job.version:
            return job
        changes = _changes(journal, request)
        try:
            journal.commit(*changes, actor=actor)
        except Conflict:
            if not tries_left:
                raise
        else:
            return changes[0].after
    raise AssertionError("unreachable")


def _changes(journal: Journal, request: RunRequest) -> tuple[Change[Any], ...]:
    definitions = Definitions(journal)
    registrations = definitions.registrations(*_records(request))
    frozen = resolved(definitions, request)
    job = Queue(journal).publication(
        category=CATEGORY,
        event_type=REQUESTED,
        aggregate_type="execution_run",
        aggregate_id=request.run.id,
        payload=_payload(frozen),
        key=_key(request.run.id),
    )
    return (job, *registrations)


def _payload(frozen: RunRequest) -> dict[str, Any]:
    """The request as a document that can be read again.

    Raises `Invalid` for a value that JSON cannot hold, and for what must be there and is empty,
    which a document leaves out.
    """
    document = show(frozen)
    try:
        read(RunRequest, document)
    except Malformed as error:
        why = "must not be empty" if error.why == ABSENT else error.why
        raise Invalid(error.field, why) from None
    return document


def _records(request: RunRequest) -> list[Record]:
    """What the request brings along, but a plan that does not fit its workflow.

    Such a plan is no definition; that there is no run for it is for its job to say (2.5).
    """
    found: list[Record | None] = [
        *embedded_environments(
            request.resources,
            request.runtimes,
            request.runtime_bindings,
            request.activity_profiles,
        ),
        request.execution_scope,
        request.network_topology,
        request.workflow,
    ]
    if len(request.plan.assignments) == len(request.workflow.activities):
        found.append(request.plan)
    return [record for record in found if record is not None]


def resolved(definitions: Definitions, request: RunRequest) -> RunRequest:
    """The request with registered definitions in the place of embedded ones of their ids (P10)."""
    plan = _registered(definitions.schedule_plan, request.plan.id) or completed(request.plan)
    workflow = _registered(definitions.workflow, request.workflow.id)
    workflow = workflow or completed(request.workflow)
    scope, topology = request.execution_scope, request.network_topology
    scope = _registered(definitions.scope, plan.execution_scope_id) or scope
    topology = _registered(definitions.topology, plan.network_topology_id) or topology
    named = [each.environment_version_id for each in request.resources]
    named += scope.environment_version_ids if scope is not None else ()
    environments = [_registered(definitions.environment, id) for id in dict.fromkeys(named) if id]
    known = [each for each in environments if each is not None]
    return changed(
        _with_environments(request, known),
        run=changed(request.run, schedule_plan_id=plan.id),
        plan=plan,
        workflow=workflow,
        execution_scope=scope,
        network_topology=topology,
    )


def _with_environments(request: RunRequest, known: list[EnvironmentVersion]) -> RunRequest:
    """What is registered counts; what it lacks is taken from the request (P10)."""
    ids = {each.id for each in known}
    others = (each for each in request.resources if each.environment_version_id not in ids)
    runtimes = {each.id: each for each in request.runtimes}
    runtimes |= {each.id: each for env in known for each in env.runtimes}
    bindings = [each for env in known for each in env.resource_runtime_bindings]
    profiles = [each for env in known for each in env.activity_resource_profiles]
    return changed(
        request,
        resources=(*(each for env in known for each in env.resources), *others),
        runtimes=tuple(runtimes.values()),
        runtime_bindings=_firsts(
            (*bindings, *request.runtime_bindings), lambda each: (each.resource_id, each.runtime_id)
        ),
        activity_profiles=_firsts(
            (*profiles, *request.activity_profiles),
            lambda each: (each.activity_type_id, each.resource_id, each.model_version),
        ),
    )


def _firsts(records: Iterable[T], key: Callable[[T], object]) -> tuple[T, ...]:
    """The first record of each key."""
    found: dict[object, T] = {}
    for each in records:
        found.setdefault(key(each), each)
    return tuple(found.values())


def _registered(find: Callable[[str], T], id: str) -> T | None:
    try:
        return find(id) if id else None
    except (NotFound, Invalid):
        return None


def request_for(
    definitions: Definitions, plan_id: str, *, run_id: str, mode: str, seed: int = 0
) -> RunRequest:
    """The request that runs a registered plan with what is registered beside it.

    Raises `NotFound` for the plan or something it names.
    """
    plan = definitions.schedule_plan(plan_id)
    scope = definitions.scope(plan.execution_scope_id)
    topology = plan.network_topology_id
    request = RunRequest(
        run=RunSpec(id=run_id, schedule_plan_id=plan_id, mode=mode, seed=seed),
        plan=plan,
        workflow=definitions.workflow(plan.workflow_version_id),
        execution_scope=scope,
        network_topology=definitions.topology(topology) if topology else None,
    )
    return resolved(definitions, request)
