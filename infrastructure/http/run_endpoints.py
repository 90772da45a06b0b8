"""Endpoints of execution runs (5)."""

from __future__ import annotations

from typing import Any, Final

from statelog.domain.runs.request import RunRequest
from statelog.domain.workflows.shape import read
from statelog.infrastructure.http import answers
from statelog.infrastructure.http.endpoint import Call, Endpoint, Services
from statelog.projections.queue.jobs import document
from statelog.projections.runs.run_summary import ALL, PAGE_SIZE

Document = dict[str, Any]
_FILTERS: Final = ("mode", "status", "kind")


def _submit(services: Services, call: Call) -> Document:
    job = services.runs.submit(read(RunRequest, call.document), actor=services.actor)
    return document(str(job.id), job.state)


def _list(services: Services, call: Call) -> Any:
    """A page when one is asked for, else all (U17)."""
    page, size = call.integer("page"), call.integer("pageSize")
    asked = {name: call.query.get(name, ALL) for name in _FILTERS}
    if page is None and size is None:
        return [{"run": run} for run in services.runs.all(**asked)]
    return services.runs.page(
        1 if page is None else page, PAGE_SIZE if size is None else size, **asked
    )


def _interrupt(services: Services, call: Call) -> None:
    ids = (call.id("id"), call.id("activityId"))
    services.runs.interrupt(*ids, actor=services.actor)


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/execution-runs/",
        "listRuns",
        "Every run that was started, newest first; a page of them with page or pageSize",
        _list,
        answer=answers.RunList,
        query={"page": int, "pageSize": int, **dict.fromkeys(_FILTERS, str)},
        errors=(400,),
    ),
    Endpoint(
        "POST",
        "/execution-runs/",
        "submitRun",
        "Ask for a run: the answer is its job, and the first one when it was asked for before",
        _submit,
        202,
        answers.QueueJob,
        RunRequest,
    ),
    Endpoint(
        "GET",
        "/execution-runs/{id}/",
        "getRun",
        "All there is to see of a run, once a worker has started it",
        lambda services, call: services.runs.get(call.id("id")),
        answer=answers.ExecutionRunPage,
        errors=(404,),
    ),
    Endpoint(
        "GET",
        "/execution-runs/{id}/comparison/",
        "compareRun",
        "Plan against observation, with the critical path",
        lambda services, call: services.runs.comparison(call.id("id")),
        answer=answers.RunComparison,
        errors=(404,),
    ),
    Endpoint(
        "POST",
        "/execution-runs/{id}/activities/{activityId}/interrupt/",
        "interruptActivity",
        "Stop an activity; what does not depend on it goes on, and the run fails",
        _interrupt,
        204,
        errors=(404, 409),
    ),
)
"""Applying a plan, and looking at it."""
