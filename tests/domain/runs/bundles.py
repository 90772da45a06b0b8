"""Requests for runs: the golden example of 4.2, a diamond, and small ones made to order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statelog.domain.runs.request import RunRequest
from statelog.domain.workflows.shape import read

Document = dict[str, Any]

SIMULATOR: Document = {"id": "sim", "driver": "simgrid", "mode": "simulation"}
LOCAL: Document = {"id": "local", "driver": "local", "mode": "execution"}


def resource(id: str, **given: Any) -> Document:
    """A resource with everything a plan needs."""
    return {
        "id": id,
        "environmentVersionId": "env-v1",
        "cpuCores": 2,
        "cpuCapacity": 2,
        "memoryBytes": 2**31,
        "schedulable": True,
        **given,
    }


def activity(id: str, seconds: float, **given: Any) -> Document:
    """An activity that takes so long at speedup 1."""
    return {
        "id": id,
        "activityTypeId": f"{id}-type",
        "name": id.capitalize(),
        "capabilities": ["simulation", "real"],
        "simulation": {"model": "deterministic", "durationSeconds": seconds},
        "metadata": {"baseRuntimeSeconds": seconds},
        **given,
    }


def link(source: str, target: str, **given: Any) -> Document:
    """A link of 100 Mbit/s and 0.05 s."""
    return {
        "id": f"{source}-{target}",
        "sourceResourceId": source,
        "targetResourceId": target,
        "bandwidthBitsPerSecond": 1e8,
        "latencySeconds": 0.05,
        "bidirectional": True,
        **given,
    }


def bundle(
    *,
    run: Mapping[str, Any] | None = None,
    resources: Iterable[Document],
    activities: Sequence[Document],
    places: Iterable[Mapping[str, Any]],
    edges: Iterable[tuple[str, str]] = (),
    data: Iterable[tuple[str, str, int]] = (),
    links: Iterable[Document] | None = (),
    profiles: Iterable[Document] = (),
    plan: Mapping[str, Any] | None = None,
    runtimes: Iterable[Document] = (SIMULATOR, LOCAL),
) -> Document:
    """A whole request for a run, as it is posted. `edges` are (before, after)."""
    resources, runtimes = list(resources), list(runtimes)
    document: Document = {
        "run": {"id": "r1", "mode": "simulation", "seed": 1, **(run or {})},
        "plan": {
            "id": "p1",
            "workflowVersionId": "w1",
            "executionScopeId": "s1",
            "source": "imported",
            "assignments": [{"id": f"p1-{at}", **place} for at, place in enumerate(places)],
            **({} if links is None else {"networkTopologyId": "n1"}),
            **(plan or {}),
        },
        "workflow": {
            "id": "w1",
            "workflowId": "w",
            "activities": activities,
            "dependencies": [
                {"activityId": after, "dependsOnActivityId": before} for before, after in edges
            ],
            "dataDependencies": [
                {
                    "producerActivityId": producer,
                    "consumerActivityId": consumer,
                    "logicalName": f"{producer}.bin",
                    "sizeBytes": size,
                }
                for producer, consumer, size in data
            ],
        },
        "resources": resources,
        "executionScope": {"id": "s1", "environmentVersionIds": ["env-v1"]},
        "runtimes": [{"environmentVersionId": "env-v1", **each} for each in runtimes],
        "runtimeBindings": [
            {"resourceId": each["id"], "runtimeId": runtime["id"], "enabled": True}
            for each in resources
            for runtime in runtimes
        ],
        "activityProfiles": list(profiles),
    }
    if links is not None:
        document["networkTopology"] = {
            "id": "n1",
            "executionScopeId": "s1",
            "links": list(links),
        }
    return document


def place(activity_id: str, resource_id: str, core: int = 0, order: int = 0, **given: Any) -> Any:
    """An assignment."""
    return {
        "activityId": activity_id,
        "resourceId": resource_id,
        "coreId": f"{resource_id}-core-{core}",
        "orderOnResource": order,
        **given,
    }


def golden(**given: Any) -> Document:
    """The example of 4.2: prepare on the edge, analyze in the cloud, summarize on the edge."""
    given = {
        "resources": [
            resource(
                "simulated-edge", type="fog_device", computeSpeedup=1, containerOverheadSeconds=0.1
            ),
            resource(
                "simulated-cloud",
                type="cloud_vm",
                cpuCores=8,
                cpuCapacity=8,
                memoryBytes=2**34,
                computeSpeedup=4,
                pricePerSecond=0.001,
                bootOverheadSeconds=0.5,
                containerOverheadSeconds=0.2,
            ),
        ],
        "activities": [activity("prepare", 4), activity("analyze", 12), activity("summarize", 2)],
        "places": [
            place("prepare", "simulated-edge"),
            place("analyze", "simulated-cloud"),
            place("summarize", "simulated-edge", order=1),
        ],
        "edges": [("prepare", "analyze"), ("analyze", "summarize")],
        "data": [("prepare", "analyze", 100_000_000), ("analyze", "summarize", 20_000_000)],
        "links": [link("simulated-edge", "simulated-cloud", pricePerByte=1e-10)],
        **given,
    }
    return bundle(**given)


def diamond(**given: Any) -> Document:
    """Four activities on two machines; `right` and `left` run side by side."""
    given = {
        "resources": [
            resource("lab", computeSpeedup=1, containerOverheadSeconds=0.2),
            resource(
                "cluster",
                computeSpeedup=2,
                pricePerSecond=0.002,
                bootOverheadSeconds=1.0,
                containerOverheadSeconds=0.3,
            ),
        ],
        "activities": [
            activity("ingest", 6),
            activity("left", 20),
            activity("right", 9),
            activity("merge", 3),
        ],
        "places": [
            place("ingest", "lab", order=1),
            place("left", "cluster", order=1),
            place("right", "lab", order=2),
            place("merge", "lab", order=3),
        ],
        "edges": [("ingest", "left"), ("ingest", "right"), ("left", "merge"), ("right", "merge")],
        "data": [
            ("ingest", "left", 50_000_000),
            ("ingest", "right", 10_000_000),
            ("left", "merge", 5_000_000),
            ("right", "merge", 1_000_000),
        ],
        "links": [
            link(
                "lab",
                "cluster",
                bandwidthBitsPerSecond=2e8,
                latencySeconds=0.1,
                pricePerByte=2e-10,
            )
        ],
        "plan": {"deadlineSeconds": 25, "budget": 0.05},
        **given,
    }
    return bundle(**given)


def request(document: Document) -> RunRequest:
    """The document as it is read."""
    return read(RunRequest, document)
