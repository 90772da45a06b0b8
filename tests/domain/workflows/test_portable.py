"""Portable workflows become workflow versions, and come back as they were (section 6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.workflows.limits import cores, size
from statelog.domain.workflows.portable import normalised, read_portable
from statelog.domain.workflows.portable_export import show_portable
from statelog.domain.workflows.workflow import (
    Activity,
    Command,
    DataDependency,
    Demand,
    Dependency,
    Policy,
    Simulation,
    WorkflowVersion,
)

TWO: dict[str, Any] = {
    "name": "Read QC",
    "spec": {
        "namespace": "lab",
        "image": "alpine",
        "activities": [
            {"name": "Count reads", "run": "wc -l in.fq", "expectedOutputs": ["n.txt"]},
            {
                "name": "report",
                "command": "cat n.txt",
                "image": "busybox",
                "cpuLimit": "250m",
                "memoryLimit": "1Gi",
                "dependsOn": ["Count reads"],
                "resourceSelector": "b",
                "keepDisk": True,
                "mountPath": "/data",
                "runtime": "local",
            },
        ],
        "dataDependencies": [
            {
                "producerActivity": "Count reads",
                "consumerActivity": "report",
                "logicalName": "n.txt",
                "sizeBytes": 12,
            }
        ],
    },
}


def spec(**changes: Any) -> dict[str, Any]:
    """The document with other values for some keys of `spec`."""
    return {**TWO, "spec": {**TWO["spec"], **changes}}


def activities(*entries: dict[str, Any]) -> dict[str, Any]:
    """A document of these activities alone."""
    return spec(activities=list(entries), dataDependencies=[])


def test_a_document_becomes_the_workflow_it_describes() -> None:
    """Ids, types, priorities, policies, capabilities and defaults are those of section 6."""
    workflow, warnings = read_portable(TWO)
    assert warnings == ()
    first, second = workflow.activities
    assert workflow == WorkflowVersion(
        "read-qc-v1",
        "read-qc",
        activities=(first, second),
        dependencies=(Dependency("report", "count-reads"),),
        data_dependencies=(DataDependency("count-reads", "report", "n.txt", 12),),
        name="Read QC",
        namespace="lab",
        metadata={"image": "alpine"},
    )
    assert first == Activity(
        "count-reads",
        "read-qc-v1",
        "read-qc-activity",
        "Count reads",
        "Count reads",
        capabilities=("real",),
        command=Command("alpine", "/bin/sh", arguments=("-c", "wc -l in.fq")),
        resources=Demand(cpu=0.1, memory_bytes=16 * 2**20),
        policy=Policy(3600.0, 1),
        priority=0,
        metadata={"expectedOutputs": ["n.txt"]},
    )
    assert second.command == Command("busybox", "/bin/sh", arguments=("-c", "cat n.txt"))
    assert second.resources == Demand(cpu=0.25, memory_bytes=2**30)
    assert second.priority == 2
    assert second.metadata == {
        "runtime": "local",
        "resourceSelector": "b",
        "keepDisk": True,
        "mountPath": "/data",
    }


def test_a_simulation_makes_an_activity_simulated_only() -> None:
    """Present it is all there is, absent there is a command; a simulation needs none."""
    simulated = {"name": "a", "simulation": {"model": "deterministic", "durationSeconds": 6}}
    (activity,) = read_portable(activities(simulated)).workflow.activities
    assert activity.capabilities == ("simulation",)
    assert activity.simulation == Simulation("deterministic", 6.0)
    with pytest.raises(Invalid, match=r"activities\[0\]\.run: activity 'a' has nothing to run"):
        read_portable(activities({"name": "a", "run": " "}))
    with pytest.raises(Invalid, match=r"activities\[0\]\.command: activity 'a' has `run` too"):
        read_portable(activities({"name": "a", "run": "x", "command": "y"}))


def test_legacy_keys_are_ignored_with_a_warning() -> None:
    """Each is named by its place; `mountPath` and `runtime` of an activity do mean something."""
    document = spec(
        storagePolicy={"type": "distributed"},
        storageClassName="standard",
        storageSize="1Gi",
        mountPath="/data",
        runtime="k8s",
        schedule="round-robin",
        nodeSelector={"a": "b"},
    )
    document["spec"]["activities"] = [{"name": "a", "run": "x", "nodeSelector": 3}]
    document["spec"]["dataDependencies"] = []
    workflow, warnings = read_portable(document, "w")
    assert [warning.split(":")[0] for warning in warnings] == [
        "w.spec.storagePolicy",
        "w.spec.storageClassName",
        "w.spec.storageSize",
        "w.spec.mountPath",
        "w.spec.runtime",
        "w.spec.schedule",
        "w.spec.nodeSelector",
        "w.spec.activities[0].nodeSelector",
    ]
    assert workflow == read_portable(activities({"name": "a", "run": "x"})).workflow


RUN = {"run": "true"}


@pytest.mark.parametrize(
    ("document", "field", "why"),
    [
        (spec(namespace=" "), "w.spec.namespace", "not be empty"),
        ({**TWO, "name": "!?"}, "w.name", "no letter"),
        (activities(), "w.spec.activities", "not be empty"),
        (
            activities({"name": "a", "dependsOn": ["b"], **RUN}),
            "w.spec.activities[0].dependsOn[0]",
            "'a' depends on activity 'b', which is not in the workflow",
        ),
        (
            activities({"name": "a", **RUN}, {"name": "a", **RUN}),
            "w.spec.activities[1].name",
            "'a' is there already",
        ),
        (
            activities({"name": "A b", **RUN}, {"name": "a-b", **RUN}),
            "w.spec.activities[1].name",
            "'a-b' is there already, which is 'a-b' as 'A b' is",
        ),
        (activities({"name": "--", **RUN}), "w.spec.activities[0].name", "no letter"),
        (
            activities(
                {"name": "a", "dependsOn": ["b"], **RUN}, {"name": "b", "dependsOn": ["a"], **RUN}
            ),
            "w.spec.dependencies",
            "cycle: a -> b -> a",
        ),
        (
            activities({"name": "a", "cpuLimit": "lots", **RUN}),
            "w.spec.activities[0].cpuLimit",
            "'lots' is not a number of cores",
        ),
        (
            activities({"name": "a", "memoryLimit": "1Ti", **RUN}),
            "w.spec.activities[0].memoryLimit",
            "'1Ti' is not a number of bytes",
        ),
        (
            spec(dataDependencies=[{**TWO["spec"]["dataDependencies"][0], "sizeBytes": 0}]),
            "w.spec.dataDependencies[0].sizeBytes",
            "1 or more",
        ),
        (
            spec(dataDependencies=[{"producerActivity": "x", "consumerActivity": "report"}]),
            "w.spec.dataDependencies[0].producerActivity",
            "no activity 'x'",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_with_field_and_name(
    document: Any, field: str, why: str
) -> None:
    """Unknown predecessors, names given twice also once normalised, cycles, limits and sizes."""
    with pytest.raises(Invalid) as refused:
        read_portable(document, "w")
    assert refused.value.field == field
    assert why in refused.value.why
    assert not isinstance(refused.value, Malformed)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], ""),
        ({"name": "a"}, "spec"),
        ({"name": "a", "spec": []}, "spec"),
        ({"spec": TWO["spec"]}, "name"),
        (spec(activities={}), "spec.activities"),
        (spec(activities=[3]), "spec.activities[0]"),
        (spec(nodes=3), "spec.nodes"),
        (activities({"name": "a", "cpu": 3}), "spec.activities[0].cpu"),
        (activities({"name": "a", "cpuLimit": [], **RUN}), "spec.activities[0].cpuLimit"),
        (activities({"name": "a", "cpuLimit": True, **RUN}), "spec.activities[0].cpuLimit"),
        (activities({"name": "a", "dependsOn": "b", **RUN}), "spec.activities[0].dependsOn"),
    ],
)
def test_what_has_another_shape_is_malformed(document: Any, field: str) -> None:
    """Unknown keys, missing ones and wrong types do not decode (P9)."""
    with pytest.raises(Malformed) as refused:
        read_portable(document)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("limit", "number"),
    [("2", 2.0), (2, 2.0), (0.5, 0.5), ("250m", 0.25), ("0.1", 0.1), ("1500m", 1.5), (0, 0.0)],
)
def test_cores_are_read(limit: Any, number: float) -> None:
    """Whole, fractions, and thousandths: `250m` is a quarter core."""
    assert cores(limit, "x") == number


@pytest.mark.parametrize(
    ("limit", "number"),
    [
        ("16Mi", 16 * 2**20),
        ("1Gi", 2**30),
        ("4Ki", 4096),
        (512, 512),
        ("512", 512),
        ("1.5Ki", 1536),
    ],
)
def test_bytes_are_read(limit: Any, number: int) -> None:
    """With binary units, or plain."""
    assert size(limit, "x") == number


@pytest.mark.parametrize("wrong", ["-1", "1e3", "", " 1", "9" * 30, "1k", "nan", -1])
def test_other_limits_are_refused(wrong: Any) -> None:
    """Signs, exponents, blanks and units nobody knows, and what no machine has."""
    with pytest.raises(Invalid):
        size(wrong, "x")


_NAME = st.text("abcdefghij XYZ_-01é", min_size=1, max_size=8).filter(normalised)
_WORDS = st.text("abc $'\"\n|é", min_size=1, max_size=8).filter(str.strip)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Documents that are valid: activities depend on earlier ones only."""
    names = draw(st.lists(_NAME, min_size=1, max_size=5, unique_by=normalised))
    entries, data = [], []
    for at, name in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        entry: dict[str, Any] = {"name": name, "dependsOn": before}
        if draw(st.booleans()):
            entry["simulation"] = {"durationSeconds": draw(st.integers(0, 9))}
        if draw(st.booleans()) or "simulation" not in entry:
            entry["run"] = draw(_WORDS)
        entry["cpuLimit"] = draw(st.sampled_from([1, "0.5", "100m"]))
        entries.append(entry)
        for other in before:
            data.append({"producerActivity": other, "consumerActivity": name, "sizeBytes": at})
    return {
        "name": draw(_NAME),
        "spec": {"namespace": "n", "activities": entries, "dataDependencies": data},
    }


@settings(max_examples=60)
@given(documents())
def test_what_is_exported_is_imported_as_it_was(document: dict[str, Any]) -> None:
    """Exporting and importing again gives the same workflow version, field by field."""
    workflow = read_portable(document).workflow
    assert read_portable(show_portable(workflow)).workflow == workflow


def test_a_workflow_from_elsewhere_is_exported_as_far_as_the_format_goes() -> None:
    """Commands become shell lines, names that lead to other ids give way to the ids."""
    workflow = WorkflowVersion(
        "w-v3",
        "w",
        3,
        activities=(
            Activity("a", name="Prepare it", command=Command(executable="cat", arguments=("a b",))),
            Activity("b", name="B", simulation=Simulation(duration_seconds=2.0)),
        ),
        dependencies=(Dependency("b", "a"),),
    )
    spec = show_portable(workflow)["spec"]
    assert [each["name"] for each in spec["activities"]] == ["a", "B"]
    assert spec["activities"][0]["run"] == "cat 'a b'"
    assert spec["namespace"] == "default"
    again = read_portable(show_portable(workflow)).workflow
    assert again.dependencies == workflow.dependencies
