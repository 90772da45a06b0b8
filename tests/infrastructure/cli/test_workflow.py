"""`statelog workflow`: import, show, list, and what is said about files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.documents import parse_text
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from tests.domain.workflows import bundle
from tests.domain.workflows.test_portable import TWO
from tests.domain.workflows.wffile import TWIN, files
from tests.infrastructure.cli.desk import Desk


def written(desk: Desk, name: str, document: Any) -> str:
    """A file on the desk; JSON is YAML too."""
    path = desk.folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_a_portable_workflow_is_imported_once(desk: Desk) -> None:
    """Its ids are printed; the same again registers nothing; another content is refused."""
    file = written(desk, "two.yaml", TWO)
    first = desk("workflow", "import", file, "--json")
    assert (first.code, first.json["workflowVersionId"]) == (0, "read-qc-v1")
    assert first.json["registered"] is True
    assert "executionScopeId" not in first.json
    again = desk("workflow", "import", file, "--json").json
    assert again == {**first.json, "registered": False}
    written(desk, "two.yaml", {**TWO, "spec": {**TWO["spec"], "image": "other"}})
    refused = desk("workflow", "import", file)
    assert (refused.code, "registered with other content" in refused.err) == (2, True)
    with Journal(desk.store) as journal:
        assert [each.stream for each in journal.read()] == ["workflow/read-qc-v1"]


def test_a_platform_comes_with_scope_and_topology(desk: Desk) -> None:
    """With --resources a portable workflow can be planned at once; missing links are said."""
    file = written(desk, "two.yaml", TWO)
    platform = {**bundle.ENVIRONMENT, "links": bundle.TOPOLOGY["links"]}
    done = desk("workflow", "import", file, "--resources", written(desk, "p.yaml", platform))
    assert (done.code, done.err) == (0, "")
    assert "statelog session create --workflow read-qc-v1" in done.out
    with Journal(desk.store) as journal:
        definitions = Definitions(journal)
        scope = definitions.scope("read-qc-v1-on-lab-v1-scope")
        assert [each.id for each in definitions.environments(scope)] == ["lab-v1"]
        topology = definitions.topology(scope.network_topology_id)
        assert (topology.execution_scope_id, len(topology.links)) == (scope.id, 1)
    written(desk, "three.yaml", {**TWO, "name": "three"})
    bare = desk("workflow", "import", str(desk.folder / "three.yaml"), "--resources")
    assert bare.code == 2
    other = {**bundle.ENVIRONMENT, "version": {"id": "bare-v1"}}
    file = written(desk, "bare.yaml", other)
    done = desk("workflow", "import", str(desk.folder / "three.yaml"), "--resources", file)
    assert (done.code, "has no links" in done.err) == (0, True)


@pytest.mark.parametrize("source", ["twin", *(path.stem for path in files())])
def test_a_measured_workflow_is_ready_to_be_planned(desk: Desk, source: str) -> None:
    """Workflow, environments, scope and topology are there, and every view is its rebuild.

    Beside the twin these are the files of `data/wfinstances` of STATELOG_SHARED, if it is there.
    """
    known = {path.stem: path for path in files()}
    file = str(known[source]) if source in known else written(desk, "twin.json", TWIN)
    done = desk("workflow", "import", file, "--json")
    assert done.code == 0, done.err
    ids = done.json
    assert (ids["format"], ids["registered"]) == ("wfformat", True)
    with Journal(desk.store) as journal:
        definitions = Definitions(journal)
        workflow = definitions.workflow(ids["workflowVersionId"])
        scope = definitions.scope(ids["executionScopeId"])
        topology = definitions.topology(ids["networkTopologyId"])
        planned, measured = definitions.environments(scope)
        assert len(workflow.activities) == ids["activityCount"]
        assert (planned.id, topology.execution_scope_id) == ("four-machines-v1", scope.id)
        assert not any(resource.schedulable for resource in measured.resources)
        assert ids["environmentVersionIds"] == [planned.id, measured.id]
        with Views(journal, all_views()) as views:
            assert views.verify() == []
    assert desk("workflow", "import", file, "--json").json["registered"] is False
    shown = desk("workflow", "show", workflow.id)
    assert "measured makespan" in shown.out


def test_what_the_twin_leaves_open_is_a_warning(desk: Desk) -> None:
    """On stderr for people, and in the JSON."""
    done = desk("workflow", "import", written(desk, "t.json", TWIN), "--name", "N 1", "--json")
    assert done.err.count("warning: ") == len(done.json["warnings"]) == 2
    assert done.json["workflowVersionId"] == "n-1-v1"


def test_a_workflow_is_shown_and_exported(desk: Desk) -> None:
    """As a table, as its document, and as portable YAML that imports as the same."""
    desk("workflow", "import", written(desk, "two.yaml", TWO))
    text = desk("workflow", "show", "read-qc-v1").out
    assert "2 in 2 levels" in text
    assert "count-reads" in text
    document = desk("workflow", "show", "read-qc-v1", "--json").json
    assert [each["id"] for each in document["activities"]] == ["count-reads", "report"]
    yaml = desk("workflow", "show", "read-qc-v1", "--portable").out
    exported = parse_text(yaml.encode(), "", yaml=True)
    assert exported == desk("workflow", "show", "read-qc-v1", "--portable", "--json").json
    again = desk("workflow", "import", written(desk, "again.yaml", exported), "--json")
    assert (again.code, again.json["registered"]) == (0, False)


def test_workflows_are_listed_newest_first(desk: Desk) -> None:
    """One line each, with counts in place of the graph."""
    desk("workflow", "import", written(desk, "two.yaml", TWO))
    assert desk("workflow", "show", "nobody").code == 1
    assert "`statelog workflow list` shows" in desk("workflow", "show", "nobody").err
    desk("workflow", "import", written(desk, "t.json", TWIN))
    lines = desk("workflow", "list", "--json").lines
    assert [(line["id"], line["activityCount"]) for line in lines] == [
        ("t-v1", 4),
        ("read-qc-v1", 2),
    ]
    assert "read-qc-v1" in desk("workflow", "list").out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.yaml", "a: &x 1\nb: *x\n", "line 2, column 4: aliases are not allowed"),
        ("x.yaml", "a: 1\na: 2\n", "the key 'a' appears twice"),
        ("x.yaml", "name: [", "is not YAML"),
        ("x.yaml", "a: .nan", "is nan"),
        ("x.yaml", "a: 2020-01-01", "'timestamp'"),
        ("x.yaml", "#" * (1024 * 1024 + 1), "larger than 1048576 bytes"),
        ("x.yaml", "- " * 300 + "a", "levels deep"),
        ("x.json", "{", "is not JSON"),
        ("x.json", '{"name": "\\ud800"}', "lone surrogate"),
        ("x.json", "[]", "document: must be an object"),
        ("x.json", '{"name": "a"}', "spec: is missing"),
        ("x.json", '{"name": "a", "nodes": []}', "nodes: is not a known field"),
        ("x.json", '{"schemaVersion": "1.4"}', "schemaVersion: is '1.4'; only '1.5' is read"),
    ],
)
def test_a_file_that_is_wrong_is_one_line_and_exit_2(
    desk: Desk, name: str, text: str, said: str
) -> None:
    """The line names the file and the place; nothing is stored."""
    path = desk.folder / name
    path.write_text(text)
    done = desk("workflow", "import", str(path))
    assert done.code == 2
    (error,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert said in error
    assert str(path) in error
    assert "Traceback" not in done.err
    assert not Path(desk.store).exists()


def test_a_platform_that_is_wrong_is_named(desk: Desk) -> None:
    """The error is about the second file."""
    file = written(desk, "two.yaml", TWO)
    wrong = written(desk, "p.yaml", {**bundle.ENVIRONMENT, "resources": [{"id": 3}]})
    done = desk("workflow", "import", file, "--resources", wrong)
    assert (done.code, f"{wrong}: resources[0].id: must be text" in done.err) == (2, True)
    assert desk("workflow", "import", file, "--name", "x").code == 2
    assert "is an environment, not a workflow" in desk("workflow", "import", wrong).error
    assert "not an environment" in desk("workflow", "import", file, "--resources", file).error
