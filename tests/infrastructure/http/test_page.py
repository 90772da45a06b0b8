"""`docs/reference/http.md` is true: its table is that of the routes, and its examples run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from statelog.infrastructure.http.app import ENDPOINTS
from statelog.infrastructure.http.endpoint import Endpoint
from statelog.infrastructure.http.openapi import codes, openapi
from tests.house.page import Block, blocks
from tests.house.repo import ROOT
from tests.infrastructure.http.live import Live

PAGE = ROOT / "docs" / "reference" / "http.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([A-Z]+ /\S+)` \|(.*)\|(.*)\|(.*)\|$", re.M)
CODE = re.compile(r"^\| (\d{3}) \|", re.M)


def rows() -> dict[str, tuple[str, int, set[int]]]:
    """The table: body, code of success, and errors of each endpoint."""
    found = {}
    for name, body, answer, errors in ROW.findall(TEXT):
        codes_told = {int(each) for each in re.findall(r"\d+", errors)}
        found[name] = (body.strip(), int(answer.split(",")[0]), codes_told)
    return found


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def test_the_table_has_every_endpoint_and_no_other():
    """In the order of the code."""
    assert list(rows()) == [name_of(each) for each in ENDPOINTS]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=name_of)
def test_each_row_is_that_of_its_endpoint(endpoint: Endpoint):
    """What it takes, what it answers, and its errors beside those of every endpoint."""
    body, status, errors = rows()[name_of(endpoint)]
    assert status == endpoint.status
    assert errors == set(endpoint.errors)
    operation = openapi([endpoint], "")["paths"][endpoint.path][endpoint.method.lower()]
    names = re.findall(r"`(\w+)`", body)
    if endpoint.body is None:
        assert names == []
    else:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        wanted = schema.get("anyOf", [schema])
        assert names == [each["$ref"].rpartition("/")[2] for each in wanted]


def test_every_code_is_told():
    """Every error that an endpoint may answer has a row, and 405 has one too."""
    told = {int(each) for each in CODE.findall(TEXT)}
    assert told == {code for each in ENDPOINTS for code in codes(each)} | {405}


def script(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with pieces of what it prints."""
    found = []
    for chunk in re.split(r"^\$ ", block.body, flags=re.M)[1:]:
        command, *shown = chunk.splitlines()
        found.append((command, [part for line in shown for part in line.split("...") if part]))
    return found


def test_the_examples_run(busy: Live, tmp_path: Path):
    """With `curl`, against a real server, they print what the page shows."""
    lines: list[str] = []
    for block in blocks(TEXT):
        if "file" in block.options:
            (tmp_path / block.options["file"]).write_text(block.body)
        if block.language == "console":
            lines += [f"{command}; echo; echo ---" for command, _ in script(block)]
    text = "\n".join(lines).replace("http://127.0.0.1:8080/akoflow-api", busy.url.rstrip("/"))
    done = subprocess.run(
        ["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    printed = done.stdout.split("---\n")
    expected = [shown for b in blocks(TEXT) if b.language == "console" for _, shown in script(b)]
    assert len(printed) == len(expected) + 1
    for pieces, output in zip(expected, printed, strict=False):
        for piece in pieces:
            assert piece in output
