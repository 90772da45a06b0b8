"""The steps of plan.json: quality control of a pair of FASTQ files.

A step is a function with the mark `@step`. Its first parameter is the context; the others are the
`params` of the plan. It works in a directory of its own, `ctx.workdir`, and finds what an earlier
step made by a path relative to that, such as `../r1-profile/profile.json`.

Whether a step is run again depends on its own parameters, inputs and outputs, not on what happened
to the steps before it. So every step names in `outdates` the outputs of the steps that read its
own, and removes them before it makes anything new: those steps then run as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from fastq_tools.figures import figures
from fastq_tools.page import page
from fastq_tools.pairs import Pairs, differences
from fastq_tools.profile import Profile
from fastq_tools.reader import GZIP_MAGIC, Reads, Record, open_failed
from fastq_tools.repeats import OVERLAP, Repeats
from fastq_tools.verdicts import findings, worst

from statelog.domain.execution import In, PermanentStepError, StepContext, StepResult, step

CHUNK = 1 << 20
OFTEN = 1024
"""Progress is reported after so many records."""


@step
def checksum(
    ctx: StepContext, reads: Annotated[Path, In], outdates: Sequence[str] = ()
) -> StepResult:
    """Note which file this is: path, size, SHA-256, plain or gzip."""
    _remove_outdated(ctx, outdates)
    digest, size, magic = hashlib.sha256(), 0, b""
    try:
        total = reads.stat().st_size
        with reads.open("rb") as file:
            while chunk := file.read(CHUNK):
                magic = magic or chunk[:2]
                digest.update(chunk)
                size += len(chunk)
                ctx.progress(100 * size / max(total, size), reads.name)
    except OSError as error:
        raise open_failed(reads, error) from error
    source = {
        "path": str(reads),
        "name": reads.name,
        "bytes": size,
        "format": "gzip" if magic == GZIP_MAGIC else "plain",
        "sha256": digest.hexdigest(),
    }
    _save(ctx, "source", source)
    return StepResult(metrics={"bytes": size, "sha256": source["sha256"]})


@step
def profile(ctx: StepContext, source: str, outdates: Sequence[str] = ()) -> StepResult:
    """Count records and bases, lengths, and per position the qualities, bases and Ns."""
    _remove_outdated(ctx, outdates)
    origin = _load(ctx, source)
    counts = Profile()
    with Reads(Path(origin["path"])) as reads:
        for record in _watched(ctx, reads):
            counts.add(record)
        reads.same_as(origin["sha256"])
    result = counts.result()
    _save(ctx, "profile", {"source": origin, **result})
    return StepResult(
        metrics={
            "records": result["records"],
            "bases": result["bases"],
            "mean_quality": result["quality"]["mean"],
            "gc": result["gc"]["fraction"],
        }
    )


@step
def repeats(
    ctx: StepContext, profile: str, adapter: str, outdates: Sequence[str] = ()
) -> StepResult:
    """Count duplicate reads, and reads that run into the adapter."""
    _remove_outdated(ctx, outdates)
    if len(adapter) < OVERLAP or not set(adapter.upper()) <= set("ACGT"):
        raise PermanentStepError(
            f"adapter {adapter!r} is not a sequence of at least {OVERLAP} bases",
            code="bad_adapter",
            advice="Give the bases that follow the fragment, such as AGATCGGAAGAGC.",
        )
    known = _load(ctx, profile)
    counts = Repeats(adapter.encode(), known["records"])
    with Reads(Path(known["source"]["path"])) as reads:
        for record in _watched(ctx, reads):
            counts.add(record)
        reads.same_as(known["source"]["sha256"])
    result = counts.result()
    _save(ctx, "repeats", result)
    return StepResult(
        metrics={
            "duplicates": result["duplicates"]["fraction"],
            "adapter_reads": result["adapter"]["reads"],
        }
    )


@step
def pair(ctx: StepContext, r1: str, r2: str, outdates: Sequence[str] = ()) -> StepResult:
    """Compare the two files: as many reads, the same names, how far their profiles differ."""
    _remove_outdated(ctx, outdates)
    profiles = [_load(ctx, r1), _load(ctx, r2)]
    sources = [known["source"] for known in profiles]
    pairs = Pairs()
    with Reads(Path(sources[0]["path"])) as first, Reads(Path(sources[1]["path"])) as second:
        for one, two in zip_longest(_watched(ctx, first), second):
            pairs.add(one, two)
        first.same_as(sources[0]["sha256"])
        second.same_as(sources[1]["sha256"])
    result = {**pairs.result(), "differences": differences(*profiles)}
    if result["mismatches"]:
        ctx.emit("pair.names_differ", mismatched=result["mismatched"], **result["mismatches"][0])
    _save(ctx, "pair", result)
    return StepResult(
        metrics={
            "compared": result["compared"],
            "mismatched": result["mismatched"],
            "same_count": result["same_count"],
        }
    )


@step
def report(
    ctx: StepContext,
    *,
    title: str,
    profiles: Sequence[str],
    repeats: Sequence[str],
    pair: str,
    outdates: Sequence[str] = (),
) -> StepResult:
    """Judge what was counted, and write it as one HTML page and one JSON file."""
    _remove_outdated(ctx, outdates)
    profiled = [_load(ctx, path) for path in profiles]
    repeated = [_load(ctx, path) for path in repeats]
    compared = _load(ctx, pair)
    checks = findings(profiled, repeated, compared)
    verdict = worst([check.verdict for check in checks])
    summary = {
        "title": title,
        "verdict": verdict,
        "checks": [check.as_json() for check in checks],
        "mates": {
            mate: {**known, **more}
            for mate, known, more in zip(("R1", "R2"), profiled, repeated, strict=True)
        },
        "pair": compared,
    }
    _save(ctx, "summary", summary)
    html = ctx.outputs["html"]
    html.write_text(page(title, summary, checks, figures(profiled, repeated)), encoding="utf-8")
    ctx.artifact("html", html)
    poor = [check.key for check in checks if check.verdict == "poor"]
    return StepResult(metrics={"verdict": verdict, "poor": poor})


def _watched(ctx: StepContext, reads: Reads) -> Iterator[Record]:
    """The records of a file, with progress by the bytes read of it."""
    for record in reads:
        yield record
        if record.number % OFTEN == 0:
            ctx.progress(reads.percent, f"{record.number:,} reads")
    ctx.progress(100, f"{reads.record:,} reads")


def _remove_outdated(ctx: StepContext, outdates: Sequence[str]) -> None:
    """Remove outputs of later steps; only below the directory of this plan."""
    plan = Path(os.path.normpath(ctx.workdir.parent))
    for name in outdates:
        path = Path(os.path.normpath(ctx.workdir / name))
        if plan not in path.parents:
            raise PermanentStepError(f"{name}: is not a file of this plan", code="outside_plan")
        path.unlink(missing_ok=True)


def _load(ctx: StepContext, name: str) -> dict[str, Any]:
    """What another step saved; the name is relative to the own work directory."""
    loaded: dict[str, Any] = json.loads((ctx.workdir / name).read_text(encoding="utf-8"))
    return loaded


def _save(ctx: StepContext, key: str, value: dict[str, Any]) -> None:
    """Write a declared output of this step, and register it as an artifact."""
    path = ctx.outputs[key]
    path.write_text(json.dumps(value, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    ctx.artifact(key, path)
