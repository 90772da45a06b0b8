"""The example plan `reads-qc`: its steps, its reader, its report and its simulated reads.

The tests run on the reads that are shipped, on a small twin of the peculiarities of real ones
(a read of length zero, comments, mates of other lengths), and, when it is there, on the folder
`data/reads` of the directory that STATELOG_SHARED names, or of `../shared` beside the tree.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import re
import sys
import zlib
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.execution import PermanentStepError, TransientStepError
from tests.examples.plan_runner import Outcome, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "reads-qc"
SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared")) / "data" / "reads"

sys.path.insert(0, str(EXAMPLE))
try:
    steps, generate = importlib.import_module("reads_qc"), importlib.import_module("generate")
    reader = importlib.import_module("fastq_tools.reader")
    profile = importlib.import_module("fastq_tools.profile")
    repeats = importlib.import_module("fastq_tools.repeats")
    charts = importlib.import_module("fastq_tools.charts")
finally:
    sys.path.remove(str(EXAMPLE))

PLAN: dict[str, Any] = json.loads((EXAMPLE / "plan.json").read_text(encoding="utf-8"))

TWIN = (
    b"@r:1 1:A:0:ACGT\n\n+\n\n@r:2 1:A:0:ACGT\nACGTNacgtu\n+\n!I#I!IIII~\n@r:3\nGG\n+r:3\nII\n",
    b"@r:1 2:A:0:ACGT\nTTTT\n+\nIIII\n@r:2 2:A:0:ACGT\nAAAAAAAA\n+\nIIIIIIII\n@r:3\nCC\n+\nII",
)


def qc(folder: Path, r1: Path, r2: Path, **params: Any) -> dict[str, Outcome]:
    """Run the plan on a pair of files, as `--param` would set them."""
    plan = json.loads(json.dumps(PLAN))
    given = {"r1-checksum": {"reads": str(r1)}, "r2-checksum": {"reads": str(r2)}, **params}
    for spec in plan["steps"]:
        spec["params"] |= given.get(spec["step_id"], {})
    return run(plan, steps, folder)


def words(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {step_id: outcome.word for step_id, outcome in outcomes.items()}


def everything(word: str) -> dict[str, str]:
    return {spec["step_id"]: word for spec in PLAN["steps"]}


def save(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def twin(folder: Path) -> tuple[Path, Path]:
    return save(folder / "a_1.fq", TWIN[0]), save(folder / "a_2.fq", TWIN[1])


def load(folder: Path, name: str) -> Any:
    return json.loads((folder / "reads-qc" / name).read_text(encoding="utf-8"))


def pairs_at_hand() -> list[str]:
    return ["shipped", "twin", *(["shared"] if (SHARED / "R1.fq").exists() else [])]


@pytest.fixture(params=pairs_at_hand())
def mates(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Each pair of files there is."""
    if request.param == "twin":
        return twin(tmp_path)
    if request.param == "shared":
        return SHARED / "R1.fq", SHARED / "R2.fq"
    return EXAMPLE / "data" / "R1.fq.gz", EXAMPLE / "data" / "R2.fq.gz"


def lines_of(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")


class TestThePlan:
    def test_the_shipped_paths_start_at_the_root_of_the_tree(self):
        """`make run` starts there, and the reads it names are there."""
        for step_id in ("r1-checksum", "r2-checksum"):
            spec = next(spec for spec in PLAN["steps"] if spec["step_id"] == step_id)
            assert (ROOT / spec["params"]["reads"]).is_file()

    def test_each_step_outdates_all_that_is_made_of_its_outputs(self):
        """`outdates` is the graph turned round: every output of every direct dependent."""
        for spec in PLAN["steps"]:
            expected = [
                f"../{later['step_id']}/{path}"
                for later in PLAN["steps"]
                if spec["step_id"] in later.get("deps", ())
                for path in later["outputs"].values()
            ]
            assert sorted(spec["params"].get("outdates", [])) == sorted(expected)

    def test_each_step_names_the_outputs_it_reads_as_they_are_declared(self):
        """A parameter `../STEP/FILE` is an output of STEP, and STEP is a dependency."""
        outputs = {
            f"../{spec['step_id']}/{path}": spec["step_id"]
            for spec in PLAN["steps"]
            for path in spec["outputs"].values()
        }
        for spec in PLAN["steps"]:
            params = {key: value for key, value in spec["params"].items() if key != "outdates"}
            read = re.findall(r"\.\./[^\"]+", json.dumps(params))
            assert {outputs[path] for path in read} == set(spec.get("deps", ()))

    def test_it_runs_and_a_second_run_reuses_every_step(
        self, tmp_path: Path, mates: tuple[Path, Path]
    ):
        """The main job, on every pair there is."""
        work = tmp_path / "work"
        assert words(qc(work, *mates)) == everything("succeeded")
        assert words(qc(work, *mates)) == everything("reused")

    def test_the_same_reads_give_the_same_bytes(self, tmp_path: Path):
        """No output depends on the time, the process, or the place of the work directory."""
        for folder in ("one", "two"):
            qc(tmp_path / folder, *twin(tmp_path))
        one, two = (
            {
                path.relative_to(tmp_path / folder): path.read_bytes()
                for path in (tmp_path / folder).rglob("*.*")
                if path.suffix in {".json", ".html"}
            }
            for folder in ("one", "two")
        )
        assert len(one) == 9
        assert one == two

    def test_other_reads_never_meet_older_results(self, tmp_path: Path):
        """With one file changed, its branch and the join run again, the other branch does not."""
        r1, r2 = twin(tmp_path)
        qc(tmp_path / "work", r1, r2)
        save(r1, TWIN[0].replace(b"\nGG\n+r:3\nII\n", b"\nGGG\n+r:3\nIII\n"))
        again = words(qc(tmp_path / "work", r1, r2))
        assert {step for step, word in again.items() if word == "reused"} == {
            *("r2-checksum", "r2-profile", "r2-repeats"),
        }
        assert set(again.values()) == {"reused", "succeeded"}
        assert load(tmp_path / "work", "report/summary.json")["mates"]["R1"]["bases"] == 13

    def test_after_a_failure_the_results_are_those_of_the_reads(self, tmp_path: Path):
        """A broken file in between leaves nothing behind that a later run could take for new."""
        r1, r2 = twin(tmp_path)
        work = tmp_path / "work"
        qc(work, r1, r2)
        qc(work, save(tmp_path / "bad.fq", b"@a\nA\n"), r2)
        assert not (work / "reads-qc/report/report.html").exists()
        other = save(tmp_path / "other.fq", TWIN[0].replace(b"GG", b"AA"))
        assert "failed" not in words(qc(work, other, r2)).values()
        changed = load(work, "report/summary.json")
        qc(tmp_path / "fresh", other, r2)
        assert changed == load(tmp_path / "fresh", "report/summary.json")

    def test_another_adapter_reaches_the_report(self, tmp_path: Path):
        """A parameter of one step makes the report new."""
        r1, r2 = twin(tmp_path)
        qc(tmp_path, r1, r2)
        again = qc(tmp_path, r1, r2, **{"r1-repeats": {"adapter": "ACGTTT"}})
        ran = {step_id for step_id, word in words(again).items() if word == "succeeded"}
        assert ran == {"r1-repeats", "report"}
        mate = load(tmp_path, "report/summary.json")["mates"]["R1"]
        assert mate["adapter"]["sequence"] == "ACGTTT"

    @pytest.mark.parametrize("adapter", ["", "ACGTN", "ACG-TTTT", "ACGTN\n"])
    def test_an_adapter_that_is_none_is_refused(self, tmp_path: Path, adapter: str):
        """And the other branch goes on."""
        outcomes = qc(tmp_path, *twin(tmp_path), **{"r2-repeats": {"adapter": adapter}})
        assert outcomes["r2-repeats"].error is not None
        assert outcomes["r2-repeats"].error.code == "bad_adapter"
        assert words(outcomes)["r1-repeats"] == "succeeded"
        assert words(outcomes)["report"] == "blocked"

    def test_a_broken_file_fails_its_branch_and_not_the_other(self, tmp_path: Path):
        """The failure is that of one step; what needs it is blocked; R2 is finished."""
        _, r2 = twin(tmp_path)
        outcomes = qc(tmp_path, save(tmp_path / "cut.fq", TWIN[0][:-7]), r2)
        assert words(outcomes) == {
            **everything("succeeded"),
            "r1-profile": "failed",
            "r1-repeats": "blocked",
            "pair": "blocked",
            "report": "blocked",
        }
        error = outcomes["r1-profile"].error
        assert "cut.fq: record 3, line 12: " in str(error)

    def test_a_missing_file_is_named(self, tmp_path: Path):
        """The first step that needs it says which, and what a relative path starts from."""
        outcomes = qc(tmp_path, tmp_path / "none.fq", twin(tmp_path)[1])
        error = outcomes["r1-checksum"].error
        assert isinstance(error, PermanentStepError)
        assert error.code == "unreadable_file"
        assert str(error) == f"{tmp_path / 'none.fq'}: cannot be read: No such file or directory"
        assert words(outcomes)["r2-repeats"] == "succeeded"

    def test_nothing_outside_the_plan_is_removed(self, tmp_path: Path):
        """`outdates` reaches the files of this plan only."""
        r1, r2 = twin(tmp_path)
        keep = save(tmp_path / "keep", b"")
        outcomes = qc(
            tmp_path, r1, r2, **{"r1-checksum": {"reads": str(r1), "outdates": ["../../keep"]}}
        )
        assert outcomes["r1-checksum"].error is not None
        assert outcomes["r1-checksum"].error.code == "outside_plan"
        assert keep.exists()

    def test_progress_rises_to_the_end(self, tmp_path: Path):
        """Percents are of the bytes on disk, and never fall."""
        data = EXAMPLE / "data"
        outcomes = qc(tmp_path, data / "R1.fq.gz", data / "R2.fq.gz")
        for step_id in ("r1-checksum", "r1-profile", "r1-repeats", "pair"):
            percents = outcomes[step_id].said.percents
            assert percents
            assert percents == sorted(percents)
            assert 0 < percents[0] <= percents[-1] <= 100

    def test_every_output_is_an_artifact(self, tmp_path: Path):
        """Each step registers what it declares."""
        outcomes = qc(tmp_path, *twin(tmp_path))
        for spec in PLAN["steps"]:
            made = {artifact.key for artifact in outcomes[spec["step_id"]].said.artifacts}
            assert made == set(spec["outputs"])


class TestTheNumbers:
    def test_profiles_match_a_recount(self, tmp_path: Path, mates: tuple[Path, Path]):
        """Every number of a profile, counted again base by base."""
        qc(tmp_path / "work", *mates)
        for mate, path in zip(("r1", "r2"), mates, strict=True):
            found = load(tmp_path / "work", f"{mate}-profile/profile.json")
            lines = lines_of(path)
            reads, quals = lines[1::4], lines[3::4]
            reads = reads[: len(quals)]
            bases = "".join(read.decode().upper().replace("U", "T") for read in reads)
            scores = [score - 33 for qual in quals for score in qual]
            assert found["records"] == len(quals)
            assert found["bases"] == len(bases) == len(scores)
            assert found["n"]["bases"] == bases.count("N")
            strong = sum(base in "GC" for base in bases)
            called = sum(base in "ACGT" for base in bases)
            assert found["gc"]["fraction"] == pytest.approx(strong / called, abs=1e-6)
            with_bases = sum(any(base in b"ACGTacgtUu" for base in read) for read in reads)
            assert sum(found["gc"]["histogram"]) == pytest.approx(with_bases, abs=0.1)
            assert found["quality"]["mean"] == pytest.approx(sum(scores) / len(scores), abs=1e-3)
            q30 = sum(score >= 30 for score in scores) / len(scores)
            assert found["quality"]["q30"] == pytest.approx(q30, abs=1e-6)
            assert found["length"]["histogram"] == {
                str(length): sum(len(read) == length for read in reads)
                for length in sorted({len(read) for read in reads})
            }
            self.check_positions(found["positions"], reads, quals)

    @staticmethod
    def check_positions(columns: dict[str, list[Any]], reads: list[bytes], quals: list[bytes]):
        for at in range(max(map(len, reads))):
            calls = [chr(read[at]).upper().replace("U", "T") for read in reads if len(read) > at]
            scores = sorted(qual[at] - 33 for qual in quals if len(qual) > at)
            assert columns["reads"][at] == len(calls)
            for base in "ACGTN":
                share = calls.count(base) / len(calls)
                assert columns[base][at] == pytest.approx(share, abs=1e-6)
            assert columns["mean"][at] == pytest.approx(sum(scores) / len(scores), abs=1e-3)
            for name, share in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
                assert columns[name][at] == scores[-(-len(scores) * share // 1).__int__() - 1]

    def test_repeats_match_a_recount(self, tmp_path: Path, mates: tuple[Path, Path]):
        """Duplicates by their first 50 bases, adapters by a search at every place."""
        qc(tmp_path / "work", *mates)
        adapter = "AGATCGGAAGAGC"
        for mate, path in zip(("r1", "r2"), mates, strict=True):
            counts = load(tmp_path / "work", f"{mate}-repeats/repeats.json")
            reads = [line.decode().upper() for line in lines_of(path)[1::4]]
            prefixes = [read[:50] for read in reads if read]
            assert counts["duplicates"]["fraction"] == pytest.approx(
                1 - len(set(prefixes)) / len(prefixes), abs=1e-6
            )
            assert sum(counts["duplicates"]["levels"].values()) == pytest.approx(1, abs=1e-5)
            alone = sum(prefixes.count(prefix) == 1 for prefix in set(prefixes))
            assert counts["duplicates"]["levels"]["1"] == pytest.approx(
                alone / len(prefixes), abs=1e-6
            )
            found = [
                read
                for read in reads
                if adapter in read
                or any(read.endswith(adapter[:size]) for size in range(6, len(adapter)))
            ]
            assert (
                counts["adapter"]["reads"]
                == len(found)
                == sum(counts["adapter"]["starts"].values())
            )

    @pytest.mark.parametrize(
        ("sequence", "start"),
        [
            (b"TTTTAGATCGGAAGAGCTTT", 4),
            (b"AGATCGGAAGAGC", 0),
            (b"TTTTAGATCG", 4),
            (b"TTTTAGATC", None),
            (b"TTTTAGATCGT", None),
            (b"AGATCG", 0),
            (b"", None),
        ],
    )
    def test_where_the_adapter_starts(self, sequence: bytes, start: int | None):
        """All of it anywhere, or at least six bases of it at the end."""
        assert repeats.adapter_start(sequence, b"AGATCGGAAGAGC") == start

    def test_a_large_file_is_sampled_by_content(self):
        """The share of duplicates hardly changes, and fewer reads are remembered."""
        lines = lines_of(EXAMPLE / "data" / "R1.fq.gz")
        full, part = repeats.Repeats(b"AGATCGG", 3000), repeats.Repeats(b"AGATCGG", 700_000)
        for at, read in enumerate(lines[1::4]):
            for counts in (full, part):
                counts.add(reader.Record(at + 1, b"@r", read, b""))
        whole, sample = full.result()["duplicates"], part.result()["duplicates"]
        assert (whole["one_in"], sample["one_in"]) == (1, 4)
        assert 500 < sample["sampled_reads"] < 1000
        assert sample["fraction"] == pytest.approx(whole["fraction"], abs=0.04)

    def test_a_file_of_many_blocks_counts_like_one_of_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """How many reads are counted together, and how much per position, changes no total."""
        path = EXAMPLE / "data" / "R2.fq.gz"
        results = []
        for block, positions in ((1 << 20, 1000), (1000, 1000), (1 << 20, 10)):
            monkeypatch.setattr(profile, "BLOCK", block)
            monkeypatch.setattr(profile, "POSITIONS", positions)
            counts = profile.Profile()
            for record in read_all(path):
                counts.add(record)
            results.append(counts.result())
        whole, blocks, short = results
        assert blocks == whole
        assert len(short["positions"]["mean"]) == 10
        assert (short["quality"], short["bases"]) == (whole["quality"], whole["bases"])

    def test_files_without_reads_are_legal(self, tmp_path: Path):
        """Empty, plain or gzip: no reads, no verdict on their quality, and a report."""
        r1, r2 = save(tmp_path / "1.fq", b""), save(tmp_path / "2.fq.gz", gzip.compress(b""))
        assert words(qc(tmp_path, r1, r2)) == everything("succeeded")
        summary = load(tmp_path, "report/summary.json")
        assert summary["mates"]["R1"]["records"] == 0
        assert summary["mates"]["R1"]["quality"] == {"mean": None, "q20": None, "q30": None}
        assert summary["verdict"] == "none"


class TestThePair:
    def pair(self, folder: Path, r1: bytes, r2: bytes) -> tuple[dict[str, Any], Outcome]:
        outcomes = qc(folder, save(folder / "1.fq", r1), save(folder / "2.fq", r2))
        assert "failed" not in words(outcomes).values()
        return load(folder, "pair/pair.json"), outcomes["pair"]

    @pytest.mark.parametrize("second", ["@a/2", "@a 2:N:0", "@a", "@a\tmore", "@a/2 comment"])
    def test_names_match_without_mate_and_comment(self, tmp_path: Path, second: str):
        """/1 and /2 and whatever follows a blank are not part of the name."""
        result, _ = self.pair(tmp_path, b"@a/1\nA\n+\nI\n", f"{second}\nA\n+\nI\n".encode())
        assert (result["mismatched"], result["same_count"]) == (0, True)

    def test_other_names_are_reported_with_their_record(self, tmp_path: Path):
        """The report, the counts and an event of its own name the first one."""
        result, outcome = self.pair(
            tmp_path,
            b"@a\nA\n+\nI\n@b\nA\n+\nI\n@c\nA\n+\nI\n",
            b"@a\nA\n+\nI\n@<x>\nA\n+\nI\n@c\nA\n+\nI\n",
        )
        assert result["mismatches"] == [{"record": 2, "r1": "b", "r2": "<x>"}]
        named = ("pair.names_differ", {"mismatched": 1, "record": 2, "r1": "b", "r2": "<x>"})
        assert outcome.said.events == [named]
        assert load(tmp_path, "report/summary.json")["verdict"] == "poor"
        html = (tmp_path / "reads-qc/report/report.html").read_text(encoding="utf-8")
        assert "&lt;x&gt;" in html
        assert "<x>" not in html

    def test_other_counts_are_reported(self, tmp_path: Path):
        """The rest of the longer file is counted, and compared with nothing."""
        one = b"@a\nA\n+\nI\n"
        result, _ = self.pair(tmp_path, one, one + b"@b\nA\n+\nI\n")
        assert result["records"] == {"r1": 1, "r2": 2}
        assert (result["same_count"], result["compared"], result["mismatched"]) == (False, 1, 0)

    def test_differences_are_r1_minus_r2(self, tmp_path: Path):
        """Quality, GC and length, from two files one can count by hand."""
        result, _ = self.pair(tmp_path, b"@a\nGCGC\n+\nIIII\n", b"@a\nAT\n+\n??\n")
        assert result["differences"] == {
            "mean_quality": 10.0,
            "q30": 0.0,
            "gc": 1.0,
            "mean_length": 2.0,
            "length_overlap": 0.0,
        }

    def test_a_file_that_changes_meanwhile_is_noticed(self, tmp_path: Path):
        """What is counted is what was checksummed; trying again might help."""
        r1, r2 = twin(tmp_path)
        qc(tmp_path, r1, r2)
        (tmp_path / "reads-qc/r1-repeats/repeats.json").unlink()
        source = tmp_path / "reads-qc/r1-profile/profile.json"
        source.write_text(re.sub(r'"sha256": "\w', '"sha256": "x', source.read_text()))
        error = qc(tmp_path, r1, r2)["r1-repeats"].error
        assert isinstance(error, TransientStepError)
        assert error.code == "reads_changed"


GOOD = b"@a\nACGT\n+\nIIII\n"
DEFECTS = {
    "truncated before the sequence": (b"@b", 2, 6, "truncated: the file ends before its sequence"),
    "truncated before +": (b"@b\nAC\n", 2, 7, "truncated: the file ends before its + line"),
    "truncated before the quality": (b"@b\nAC\n+\n", 2, 8, "truncated: the file ends before its q"),
    "quality shorter": (b"@b\nACG\n+\nII\n", 2, 8, "shorter than the sequence (2 characters for 3"),
    "quality longer": (b"@b\nAC\n+\nIII\n", 2, 8, "longer than the sequence (3 characters for 2"),
    "no quality": (b"@b\nAC\n+\n\n@c\nA\n+\nI\n", 2, 8, "shorter than the sequence (0 characters"),
    "missing @": (b"b\nAC\n+\nII\n", 2, 5, "starts with 'b' where a name with @ is expected"),
    "fasta": (b">b\nAC\n>c\nAC\n", 2, 5, "starts with '>b' where a name with @"),
    "missing +": (b"@b\nAC\nII\n@c\n", 2, 7, "starts with 'II' where + is expected"),
    "wrapped": (b"@b\nAC\nGT\n+\nIIII\n", 2, 7, "starts with 'GT' where + is expected"),
    "another name": (b"@b\nAC\n+c\nII\n", 2, 7, "the + line repeats another name, 'c'"),
    "blank line": (b"\n@b\nAC\n+\nII\n", 2, 5, "is blank where a name with @ is expected"),
    "not a base": (b"@b\nA!\n+\nII\n", 2, 6, "'!' at position 2 of the sequence is not a base"),
    "blank in bases": (b"@b\nA T\n+\nIII\n", 2, 6, "' ' at position 2 of the sequence"),
    "quality out of range": (b"@b\nAC\n+\nI \n", 2, 8, "' ' at position 2 is not a quality"),
    "quality not ASCII": (b"@b\nAC\n+\nI\xc3\xa9\n", 2, 8, "is not a quality character"),
    "name not text": (b"@b\xff\nAC\n+\nII\n", 2, 5, "not text"),
    "name with NUL": (b"@b\x00\nAC\n+\nII\n", 2, 5, "not text (it holds control characters)"),
    "bases not text": (b"@b\nA\x80\n+\nII\n", 2, 6, "not text"),
    "binary": (b"BAM\x01\x00\x00\xfe\n\x00", 2, 5, "not text"),
}


def read_all(path: Path) -> list[Any]:
    with reader.Reads(path) as reads:
        return list(reads)


class TestTheReader:
    @pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
    @pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
    @pytest.mark.parametrize("name", DEFECTS)
    def test_a_defect_is_named_with_file_record_and_line(
        self, tmp_path: Path, name: str, ending: bytes, packed: bool
    ):
        """Each defect, in the second record of a file, plain and packed."""
        tail, record, line, message = DEFECTS[name]
        content = (GOOD + tail).replace(b"\n", ending)
        path = save(tmp_path / "bad.fq", gzip.compress(content) if packed else content)
        with pytest.raises(PermanentStepError) as caught:
            read_all(path)
        assert str(caught.value).startswith(f"{path}: record {record}, line {line}: ")
        assert message in str(caught.value)
        assert caught.value.code == "malformed_fastq"
        assert caught.value.advice

    @pytest.mark.parametrize("cut", [11, 60, 4000, 100_000])
    def test_a_truncated_gzip_file_is_named(self, tmp_path: Path, cut: int):
        """With the record it ends in."""
        data = (EXAMPLE / "data" / "R1.fq.gz").read_bytes()
        path = save(tmp_path / "cut.fq.gz", data[:cut])
        with pytest.raises(
            PermanentStepError, match="the gzip data is damaged or truncated"
        ) as bad:
            read_all(path)
        record, line = map(int, re.findall(r"record (\d+), line (\d+)", str(bad.value))[0])
        assert record == (line + 3) // 4
        assert line > cut / 100

    def test_a_damaged_gzip_file_is_named(self, tmp_path: Path):
        """One byte is enough, whether it breaks the packing or the checksum."""
        data = bytearray((EXAMPLE / "data" / "R2.fq.gz").read_bytes())
        data[-6] ^= 1
        with pytest.raises(PermanentStepError, match=r"record 3001, line 12001: the gzip data"):
            read_all(save(tmp_path / "crc.fq.gz", bytes(data)))
        data[90_000:90_100] = b"\xff" * 100
        with pytest.raises(PermanentStepError) as caught:
            read_all(save(tmp_path / "bits.fq.gz", bytes(data)))
        assert caught.value.code == "malformed_fastq"

    def test_a_line_without_end_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """A file of one endless line does not fill the memory."""
        monkeypatch.setattr(reader, "LONGEST_LINE", 100)
        path = save(tmp_path / "long.fq", GOOD + b"@" + b"b" * 200)
        with pytest.raises(PermanentStepError, match="record 2, line 5: has no end"):
            read_all(path)

    @pytest.mark.parametrize(
        "content",
        [GOOD[:-1], GOOD + b"\n\n", GOOD.replace(b"+", b"+a"), GOOD.replace(b"\n", b"\r\n")],
        ids=["no last line end", "blank lines at the end", "name repeated", "CRLF"],
    )
    def test_what_is_legal(self, tmp_path: Path, content: bytes):
        """The same record, in every form it may have."""
        [record] = read_all(save(tmp_path / "good.fq", content))
        assert record == (1, b"@a", b"ACGT", b"IIII")

    def test_packed_in_several_members(self, tmp_path: Path):
        """As block compression and `cat` make them."""
        packed = gzip.compress(GOOD) + gzip.compress(GOOD)
        assert len(read_all(save(tmp_path / "two.fq.gz", packed))) == 2

    @settings(max_examples=60, deadline=None)
    @given(
        records=st.lists(
            st.integers(0, 30).flatmap(
                lambda size: st.tuples(
                    st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12).map(
                        lambda name: name.encode()
                    ),
                    st.text("ACGTNacgtn.", min_size=size, max_size=size).map(str.encode),
                    st.text(
                        st.characters(min_codepoint=33, max_codepoint=126),
                        min_size=size,
                        max_size=size,
                    ).map(str.encode),
                    st.booleans(),
                )
            ),
            max_size=6,
        ),
        ending=st.sampled_from([b"\n", b"\r\n"]),
        packed=st.booleans(),
        last=st.booleans(),
    )
    def test_records_come_back_as_they_were_written(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        records: list[tuple[bytes, bytes, bytes, bool]],
        ending: bytes,
        packed: bool,
        last: bool,
    ):
        """Random valid records: @ and + in qualities, empty reads, both endings, plain, packed."""
        lines = [
            line
            for name, sequence, quality, repeat in records
            for line in (b"@" + name, sequence, b"+" + (name if repeat else b""), quality)
        ]
        content = ending.join(lines) + (ending if last and lines else b"")
        path = tmp_path_factory.mktemp("reads") / "random.fq"
        save(path, gzip.compress(content, mtime=0) if packed else content)
        assert read_all(path) == [
            (number, b"@" + name, sequence, quality)
            for number, (name, sequence, quality, _) in enumerate(records, 1)
        ]


class Outline(HTMLParser):
    """Checks that tags close in order, and keeps what a reader or a browser would follow."""

    VOID = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.refers: list[str] = []
        self.loads: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value or "")
            if key == "aria-labelledby":
                self.refers += (value or "").split()
            if key in {"src", "href", "xlink:href", "data", "action"}:
                self.loads.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class TestTheReport:
    def report(self, folder: Path, mates: tuple[Path, Path]) -> str:
        outcomes = qc(folder / "work", *mates)
        assert outcomes["report"].result is not None
        return (folder / "work/reads-qc/report/report.html").read_text(encoding="utf-8")

    def test_it_is_one_whole_page(self, tmp_path: Path, mates: tuple[Path, Path]):
        """Tags close, ids are unique, every chart has a title, nothing is loaded from elsewhere."""
        html = self.report(tmp_path, mates)
        outline = Outline()
        outline.feed(html)
        outline.close()
        assert outline.open == []
        assert len(outline.ids) == len(set(outline.ids))
        assert set(outline.refers) <= set(outline.ids)
        assert outline.count["figure"] == 10
        assert "script" not in outline.count
        assert outline.loads == []
        assert "url(" not in html
        assert "@import" not in html
        assert "http" not in html
        assert "nan" not in re.sub(r"[a-z]+nan|nan[a-z]+", "", html.lower())

    def test_what_comes_from_files_is_escaped(self, tmp_path: Path):
        """Also a file name that is markup."""
        folder = tmp_path / "<b>&"
        folder.mkdir()
        html = self.report(tmp_path, twin(folder))
        assert "<b>&" not in html
        assert "&lt;b&gt;&amp;" in html

    def test_the_shipped_reads_show_what_was_simulated(self, tmp_path: Path):
        """Worse R2, one bad cycle in R1, adapter and duplicates, more than one length."""
        data = EXAMPLE / "data"
        self.report(tmp_path, (data / "R1.fq.gz", data / "R2.fq.gz"))
        summary = load(tmp_path / "work", "report/summary.json")
        r1, r2 = summary["mates"]["R1"], summary["mates"]["R2"]
        assert summary["verdict"] == "look"
        assert summary["pair"]["differences"]["mean_quality"] > 1
        unknown = r1["positions"]["N"]
        assert unknown.index(max(unknown)) + 1 == generate.BAD_CYCLE
        assert 0.02 < r1["adapter"]["fraction"] < 0.05
        assert 0.04 < r2["duplicates"]["fraction"] < 0.2
        assert len(r1["length"]["histogram"]) > 20

    @pytest.mark.parametrize(
        ("low", "high"), [(0, 1), (1, 101), (0, 42), (-9.3, 6.1), (0, 0.011), (0, 3e6), (5, 5)]
    )
    def test_ticks_are_few_and_inside(self, low: float, high: float):
        """Two to twelve of them, evenly spaced."""
        found = charts.ticks(low, high)
        assert all(low <= tick <= high for tick in found)
        assert (2 if high > low else 1) <= len(found) <= 12
        gaps = {round(b - a, 9) for a, b in pairwise(found)}
        assert len(gaps) <= 1


class TestTheShippedReads:
    def test_the_generator_makes_them(self):
        """The same text everywhere; the same bytes wherever zlib is the one they were made by."""
        for name, text in zip(("R1.fq.gz", "R2.fq.gz"), generate.simulate(), strict=True):
            shipped = (EXAMPLE / "data" / name).read_bytes()
            assert gzip.decompress(shipped) == text
            if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
                assert generate.pack(text) == shipped

    def test_another_seed_makes_others(self):
        """The seed matters."""
        assert generate.simulate(seed=1, pairs=2) != generate.simulate(seed=2, pairs=2)

    def test_they_are_small(self):
        """A clone stays quick."""
        assert sum(path.stat().st_size for path in (EXAMPLE / "data").iterdir()) < 700_000
