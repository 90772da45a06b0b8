"""WfFormat files become definitions to plan with: on a twin, and on real files where they are.

The real ones are in `data/wfinstances` of the directory that STATELOG_SHARED names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.checks import check_environment, check_topology
from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.durations import duration, fits, profile_table, schedulable
from statelog.domain.workflows.graph import bytes_between, edges, predecessors
from statelog.domain.workflows.network import Network
from statelog.domain.workflows.platform import FOUR_MACHINES, Platform, read_platform
from statelog.domain.workflows.resources import Resource
from statelog.domain.workflows.shape import show
from statelog.domain.workflows.wfformat import Instance, read_wfformat
from tests.domain.workflows import bundle
from tests.domain.workflows.wffile import TWIN, files, twin

READ = read_wfformat(TWIN, "My Twin", FOUR_MACHINES)


def test_tasks_become_activities_that_can_be_simulated() -> None:
    """With what was measured of them; what is unknown is no limit (P20)."""
    split, work, _, join = READ.workflow.activities
    assert (READ.workflow.id, READ.workflow.workflow_id) == ("my-twin-v1", "my-twin")
    assert (split.id, split.name, split.capabilities) == ("split", "split", ("simulation",))
    assert (split.command.executable, split.command.arguments) == ("split", ("-n", "2", "in.dat"))
    assert (split.resources.cpu, split.resources.memory_bytes) == (2.0, 4096)
    assert (work.name, work.resources.cpu, work.resources.memory_bytes) == ("work", 0.0, 0)
    assert fits(work, Resource("tiny", cpu_capacity=0.1, memory_bytes=1))
    assert join.simulation is None
    assert READ.workflow.metadata["measuredMakespanSeconds"] == 31.5


def test_files_become_data_dependencies() -> None:
    """A pair for each file with bytes that one writes and another reads; nothing from outside."""
    assert bytes_between(READ.workflow) == {
        ("split", "work_1"): 300,
        ("split", "work_2"): 1000,
        ("work_1", "join"): 30,
        ("work_2", "join"): 70,
    }
    assert {each.logical_name for each in READ.workflow.data_dependencies} == {
        "a.dat",
        "b.dat",
        "c.dat",
        "d.dat",
    }


def test_whoever_reads_a_file_waits_for_who_writes_it() -> None:
    """Also for an empty one, and where neither parents nor children say so."""
    assert predecessors(READ.workflow) == {
        "split": (),
        "work_1": ("split",),
        "work_2": ("split",),
        "join": ("work_1", "work_2"),
    }
    pairs = {(d.activity_id, d.depends_on_activity_id) for d in READ.workflow.dependencies}
    assert len(pairs) == len(READ.workflow.dependencies) == 4


def test_a_measured_runtime_is_a_profile_on_every_resource() -> None:
    """Divided by the speedup; 0 counts; of a task nobody measured there is none (P20)."""
    table = profile_table(READ.measured.activity_resource_profiles)
    split, _, zero, unknown = READ.workflow.activities
    resources = (*READ.environment.resources, *READ.measured.resources)
    seconds = {r.id: duration(split, r, table) for r in resources}
    assert seconds == {
        "workstation": 6.0,
        "cluster-1": 4.0,
        "cluster-2": 4.0,
        "cloud": 2.4,
        "my-twin:node-1": 6.0,
        "my-twin:node-2": 6.0,
    }
    assert {duration(zero, r, table) for r in resources} == {0.0}
    assert duration(unknown, resources[0], table) == 1.0
    assert len(table) == 3 * len(resources)


def test_machines_become_resources_that_nothing_is_scheduled_on() -> None:
    """They are in the scope for the record; the platform is what is planned on."""
    first, second = READ.measured.resources
    assert (first.name, first.cpu_cores, first.memory_bytes) == ("node-1", 24, 0)
    assert (second.name, second.cpu_cores, second.memory_bytes) == ("node-2", 0, 1048576)
    usable = schedulable(
        [*READ.environment.resources, first, second],
        READ.scope,
    )
    assert [r.id for r in usable] == ["cloud", "cluster-1", "cluster-2", "workstation"]
    assert READ.scope.environment_version_ids == (READ.environment.id, READ.measured.id)


def test_what_a_file_leaves_open_is_said() -> None:
    """A task without a runtime, a file without a size."""
    assert READ.warnings == (
        "1 tasks have no runtime, such as 'join'",
        "1 files have no size and count 0 bytes, such as 'scratch'",
    )


def test_the_built_in_platform_is_four_machines_that_reach_each_other() -> None:
    """Rules are kept, every pair has a link, and faster ones cost more."""
    check_environment(FOUR_MACHINES.environment)
    scope, topology = FOUR_MACHINES.ground("w-v1")
    check_topology(topology, [scope.id])
    machines = FOUR_MACHINES.environment.resources
    network = Network(topology)
    assert len(machines) == 4
    assert all(r.schedulable for r in machines)
    assert all(network.direct(a.id, b.id) for a in machines for b in machines if a != b)
    by_speed = sorted(machines, key=lambda r: r.compute_speedup)
    assert [r.price_per_second for r in by_speed] == sorted(r.price_per_second for r in machines)


def test_a_platform_is_a_bundle_with_links() -> None:
    """The links stand beside the other parts; what is wrong with one is named there."""
    document = {**bundle.ENVIRONMENT, "links": bundle.TOPOLOGY["links"]}
    platform = read_platform(document)
    assert platform == Platform(completed(bundle.environment()), bundle.topology().links)
    assert read_platform(bundle.ENVIRONMENT).links == ()
    with pytest.raises(Malformed, match=r"p\.links\[0\]\.sourceResourceId: is missing"):
        read_platform({**document, "links": [{"targetResourceId": "b"}]}, "p")
    instance = read_wfformat(TWIN, "t", platform)
    assert [link.id for link in instance.topology.links] == ["ab"]
    assert instance.scope.id == "t-v1-on-lab-v1-scope"
    assert instance.measured.id == "t-v1-on-lab-v1-measured-v1"


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """The twin with one value put in the place of another."""
    document = twin()
    here: Any = document
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = value
    return document


SPECIFIED = ("workflow", "specification", "tasks")
MEASURED = ("workflow", "execution", "tasks")


@pytest.mark.parametrize(
    ("document", "field", "why"),
    [
        (changed("schemaVersion", value="1.3"), "schemaVersion", "is '1.3'; only '1.5' is read"),
        (changed("schemaVersion", value=None), "schemaVersion", "only '1.5' is read"),
        (
            changed(*SPECIFIED, 1, "id", value="split"),
            "workflow.specification.tasks[1].id",
            "task 'split' is there twice",
        ),
        (
            changed(*SPECIFIED, 3, "parents", value=["nobody"]),
            "workflow.specification.tasks[3].parents[0]",
            "no task 'nobody' is specified",
        ),
        (
            changed(*SPECIFIED, 0, "parents", value=["join"]),
            "workflow.specification: dependencies",
            "cycle",
        ),
        (
            changed(*MEASURED, 1, "id", value="nobody"),
            "workflow.execution.tasks[1].id",
            "no task 'nobody' is specified",
        ),
        (
            changed(*MEASURED, 1, "runtimeInSeconds", value=-1),
            "workflow.execution.tasks[1]",
            "negative",
        ),
        (
            changed("workflow", "execution", "machines", 1, "nodeName", value="node-1"),
            "workflow.execution.machines[1].nodeName",
            "'node-1' is there twice",
        ),
        (
            changed(*SPECIFIED, value=[]),
            "workflow.execution.tasks[0].id",
            "no task 'split' is specified",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_by_its_field(document: Any, field: str, why: str) -> None:
    """Other versions, tasks given twice or known to nobody, cycles, negative measurements."""
    with pytest.raises(Invalid) as refused:
        read_wfformat(document, "t", FOUR_MACHINES)
    assert (refused.value.field, why in refused.value.why) == (field, True)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], ""),
        ({"schemaVersion": "1.5"}, "workflow"),
        (changed("workflow", "specification", value=[]), "workflow.specification"),
        (changed(*SPECIFIED, value={}), "workflow.specification.tasks"),
        (changed(*SPECIFIED, 0, value=3), "workflow.specification.tasks[0]"),
        (changed(*SPECIFIED, 0, "parents", value="x"), "workflow.specification.tasks[0].parents"),
        (changed(*SPECIFIED, 0, value={"name": "x"}), "workflow.specification.tasks[0].id"),
        (
            changed(*MEASURED, 0, "runtimeInSeconds", value="6"),
            "workflow.execution.tasks[0].runtimeInSeconds",
        ),
    ],
)
def test_what_has_another_shape_is_malformed(document: Any, field: str) -> None:
    """Only what is used is looked at, and that must be of its type."""
    with pytest.raises(Malformed) as refused:
        read_wfformat(document, "t", FOUR_MACHINES)
    assert refused.value.field == field


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_real_file_keeps_its_graph_its_runtimes_and_its_bytes(path: Path) -> None:
    """Compared with the file itself; the claims are those made of the twin above."""
    document = json.loads(path.read_bytes())
    found = read_wfformat(document, path.stem, FOUR_MACHINES)
    specified = document["workflow"]["specification"]
    tasks = specified["tasks"]
    assert [a.id for a in found.workflow.activities] == [task["id"] for task in tasks]
    assert set(edges(found.workflow)) == {
        (parent, task["id"]) for task in tasks for parent in task.get("parents", ())
    }
    _compare_bytes(found, specified)
    _compare_runtimes(found, document["workflow"]["execution"]["tasks"])
    assert found.warnings == ()


def _compare_bytes(found: Instance, specified: dict[str, Any]) -> None:
    sizes = {each["id"]: each["sizeInBytes"] for each in specified["files"]}
    expected: dict[tuple[str, str], int] = {}
    for writer in specified["tasks"]:
        for reader in specified["tasks"]:
            shared = set(writer.get("outputFiles", ())) & set(reader.get("inputFiles", ()))
            total = sum(sizes[name] for name in shared)
            if writer is not reader and total:
                expected[writer["id"], reader["id"]] = total
    assert bytes_between(found.workflow) == expected


def _compare_runtimes(found: Instance, measured: list[dict[str, Any]]) -> None:
    table = profile_table(found.measured.activity_resource_profiles)
    seconds = {each["id"]: each["runtimeInSeconds"] for each in measured}
    for activity in found.workflow.activities:
        for resource in FOUR_MACHINES.environment.resources:
            planned = duration(activity, resource, table)
            assert planned == seconds[activity.id] / resource.compute_speedup


def test_importing_twice_says_the_same() -> None:
    """The definitions are a function of the file, its name and the platform."""
    again = read_wfformat(twin(), "My Twin", FOUR_MACHINES)
    assert again == READ
    assert [show(record) for record in again[:5]] == [show(record) for record in READ[:5]]
