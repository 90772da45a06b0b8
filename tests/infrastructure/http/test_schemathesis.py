"""Schemathesis asks everything the OpenAPI document allows, and much that it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.amounts import amount
from tests.domain.runs.bundles import golden
from tests.infrastructure.http.asking import own
from tests.infrastructure.http.live import Live, soon
from tests.infrastructure.planning.lab import Lab

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
)
LARGE = (
    "storePlan",
    "importPlan",
    "submitRun",
    "importWorkflow",
    "registerWorkflow",
    "registerEnvironment",
    "registerTopology",
    "registerResource",
)
"""Operations with thousands of cases to cover, each of a field somewhere in a large body."""


def furnish(live: Live) -> None:
    """Records of every kind, under ids that the document's examples may hit."""
    with live.journal() as journal:
        Lab(journal).create("s1", "heft", "moheft")
    live.post("/execution-runs/", own(golden(), "r1"), status=202)
    soon(lambda: live("GET", "/execution-runs/r1/").status == 200)


def hold(live: Live, folder: Path, *words: str) -> None:
    """Run Schemathesis against a server. Fails with its report."""
    args = (
        *("-m", "schemathesis.cli", "run", f"{live.url}openapi.json", "--no-color"),
        *("--checks", ",".join(CHECKS)),
        *("--generation-deterministic", "--suppress-health-check", "all", *words),
    )
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_the_server_is_as_its_document_says(busy: Live, tmp_path: Path):
    """No 5xx, no undocumented code, no answer of another shape, nothing taken that is forbidden."""
    furnish(busy)
    hold(busy, tmp_path, "--phases", "fuzzing", "--max-examples", "8")
    large = [word for name in LARGE for word in ("--exclude-operation-id", name)]
    hold(busy, tmp_path, "--phases", "coverage", *large)
    assert "Traceback" not in busy.log.read_text()


@pytest.mark.long
def test_the_server_is_as_its_document_says_at_length(busy: Live, tmp_path: Path):
    """The same with every field of every body, and with one request after another."""
    furnish(busy)
    hold(busy, tmp_path, "--max-examples", amount("100", "5"))
    assert "Traceback" not in busy.log.read_text()
