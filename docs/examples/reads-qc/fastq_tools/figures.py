"""The charts of the report, each made from the counts of one file or of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastq_tools.charts import Chart, Points
from fastq_tools.repeats import LEVELS
from fastq_tools.verdicts import number, percent

MATES: Final = ("R1", "R2")
Key = list[tuple[str, str]]
Figure = tuple[Chart, Key, str]
"""A chart, its legend (CSS class, words), and one sentence on how to read it."""

BOTH: Final[Key] = [("r1", "R1"), ("r2", "R2")]
DRAWN: Final = 400
"""Points in a line; longer reads are drawn at every n-th position."""


def figures(profiles: Sequence[dict[str, Any]], repeats: Sequence[dict[str, Any]]) -> list[Figure]:
    """Every figure of the report, in its order."""
    return [
        *(quality(mate, profile) for mate, profile in zip(MATES, profiles, strict=True)),
        *(bases(mate, profile) for mate, profile in zip(MATES, profiles, strict=True)),
        unknown(profiles),
        gc(profiles),
        lengths(profiles),
        difference(profiles),
        duplicates(repeats),
        adapter(profiles, repeats),
    ]


def quality(mate: str, profile: dict[str, Any]) -> Figure:
    """Quality per position of one file."""
    columns, last = profile["positions"], len(profile["positions"]["mean"])
    chart = Chart(
        f"Quality per position, {mate}",
        f"Mean quality of {mate} is {number(profile['quality']['mean'])};"
        f" {_edges(columns['mean'])}.",
        x=(1, max(last, 2)),
        y=(0, max([42, *(value for value in columns["p90"] if value is not None)])),
        x_label="position in the read",
        y_label="Phred quality",
    )
    chart.zone(0, 20, "zone-poor")
    chart.zone(20, 30, "zone-look")
    chart.zone(30, chart.y[1], "zone-good")
    css = mate.lower()
    chart.band(_along(columns["p10"]), _along(columns["p90"]), f"{css} faint", "10 to 90 percent")
    chart.band(_along(columns["q1"]), _along(columns["q3"]), css, "middle half")
    chart.line(_along(columns["median"]), f"{css} dashed", "median")
    chart.line(_along(columns["mean"]), css, "mean")
    key = [
        (css, "mean"),
        (f"{css} dashed", "median"),
        (f"{css} half", "middle half"),
        (f"{css} faint", "10 to 90 %"),
    ]
    return chart, key, "Green ground is 30 and more, red below 20."


def bases(mate: str, profile: dict[str, Any]) -> Figure:
    """Base composition per position of one file."""
    columns = profile["positions"]
    top = max([0.4, *(value for base in "ACGT" for value in columns[base] if value is not None)])
    chart = Chart(
        f"Base composition, {mate}",
        f"Share of A, C, G, T and N at each position of {mate};"
        f" GC is {percent(profile['gc']['fraction'])} overall.",
        x=(1, max(len(columns["mean"]), 2)),
        y=(0, min(1.0, top * 1.1)),
        x_label="position in the read",
        y_label="share of reads",
        y_show=_as_percent,
    )
    for base in "ACGTN":
        chart.line(_along(columns[base]), f"base-{base.lower()}", base)
    key = [(f"base-{base.lower()}", base) for base in "ACGTN"]
    return chart, key, "Flat lines are what a random library gives; slopes show adapter or bias."


def unknown(profiles: Sequence[dict[str, Any]]) -> Figure:
    """Bases that were not called, per position."""
    columns = [profile["positions"]["N"] for profile in profiles]
    top = max([0.01, *(value for column in columns for value in column if value is not None)])
    chart = Chart(
        "Bases not called (N)",
        f"Share of N per position; overall {_mates(profiles, 'n')}.",
        x=_positions(profiles),
        y=(0, top * 1.1),
        x_label="position in the read",
        y_label="share of reads",
        y_show=_as_percent,
    )
    for mate, column in zip(MATES, columns, strict=True):
        chart.line(_along(column), mate.lower(), mate)
    return chart, BOTH, "A spike is one bad cycle of the sequencer."


def gc(profiles: Sequence[dict[str, Any]]) -> Figure:
    """GC content per read."""
    curves = [_shares(profile["gc"]["histogram"]) for profile in profiles]
    chart = Chart(
        "GC content per read",
        f"Distribution of GC per read; overall {_mates(profiles, 'gc')}.",
        x=(0, 100),
        y=(0, max([0.01, *curves[0], *curves[1]]) * 1.1),
        x_label="GC in percent",
        y_label="share of reads",
        y_show=_as_percent,
    )
    for mate, curve in zip(MATES, curves, strict=True):
        if any(curve):
            points = list(enumerate(curve))
            chart.band([(x, 0) for x, _ in points], points, f"{mate.lower()} faint")
            chart.line(points, mate.lower(), mate)
    return chart, BOTH, "One hump is one source; a second hump may be contamination."


def lengths(profiles: Sequence[dict[str, Any]]) -> Figure:
    """How long the reads are."""
    histograms = [profile["length"]["histogram"] for profile in profiles]
    values = [int(length) for histogram in histograms for length in histogram]
    low, high = min(values, default=0), max(values, default=1)
    width = max(1, -(-(high - low + 1) // 24))
    bins = (high - low) // width + 1
    shares = [_binned(histogram, low, width, bins) for histogram in histograms]
    chart = Chart(
        "Read length",
        f"R1 reads have {_span(profiles[0])} bases, R2 reads {_span(profiles[1])}.",
        x=(low - width * 0.5, low + width * (bins - 0.5) + 0.01),
        y=(0, max([0.01, *shares[0], *shares[1]]) * 1.05),
        x_label="length in bases" + (f", {width} to a bar" if width > 1 else ""),
        y_label="share of reads",
        y_show=_as_percent,
    )
    for at in range(bins):
        start = low + at * width
        words = f"{start}" if width == 1 else f"{start} to {start + width - 1}"
        _twin_bars(chart, start, width, (shares[0][at], shares[1][at]), f"{words} bases")
    return chart, BOTH, "Several lengths mean that the reads were trimmed."


def difference(profiles: Sequence[dict[str, Any]]) -> Figure:
    """How much better R1 is than R2 at each position."""
    means = [profile["positions"]["mean"] for profile in profiles]
    gaps = [
        None if one is None or two is None else one - two
        for one, two in zip(means[0], means[1], strict=False)
    ]
    known = [gap for gap in gaps if gap is not None]
    low, high = min([-2.0, *known]) * 1.1, max([2.0, *known]) * 1.1
    chart = Chart(
        "Quality, R1 minus R2",
        f"Difference of the mean qualities per position; {_edges(gaps)}.",
        x=_positions(profiles),
        y=(low, high),
        x_label="position in the read",
        y_label="Phred quality",
    )
    if known:
        points = _along(gaps)
        chart.band([(x, 0) for x, _ in points], points, "pair faint")
        chart.line([(x, 0) for x in chart.x], "zero")
        chart.line(points, "pair", "R1 minus R2")
    return chart, [("pair", "R1 minus R2")], "R2 is read last, and most often a little worse."


def duplicates(repeats: Sequence[dict[str, Any]]) -> Figure:
    """How often a sequence is repeated."""
    levels = [repeat["duplicates"]["levels"] for repeat in repeats]
    names = [name for name, _ in LEVELS]
    known = any(repeat["duplicates"]["sampled_reads"] for repeat in repeats)
    shares = [percent(repeat["duplicates"]["fraction"]) for repeat in repeats]
    chart = Chart(
        "Duplicate reads",
        f"Share of duplicates: {shares[0]} in R1, {shares[1]} in R2.",
        x=(-0.5, len(names) - 0.5),
        y=(0, 1),
        x_label="copies of a sequence",
        y_label="share of reads",
        x_names=names,
        y_show=_as_percent,
    )
    for at, name in enumerate(names if known else ()):
        _twin_bars(chart, at, 1, (levels[0][name], levels[1][name]), f"{name} copies")
    return chart, BOTH, "Reads at 1 are unique; the more to the right, the more copies."


def adapter(profiles: Sequence[dict[str, Any]], repeats: Sequence[dict[str, Any]]) -> Figure:
    """Where the adapter begins, added up along the read."""
    curves = [
        _cumulative(repeat["adapter"]["starts"], profile)
        for profile, repeat in zip(profiles, repeats, strict=True)
    ]
    shares = [percent(repeat["adapter"]["fraction"]) for repeat in repeats]
    chart = Chart(
        "Adapter along the read",
        f"Reads with adapter: {shares[0]} in R1, {shares[1]} in R2.",
        x=_positions(profiles),
        y=(0, max([0.02, *(value for curve in curves for value in curve)]) * 1.1),
        x_label="position in the read",
        y_label="reads in adapter",
        y_show=_as_percent,
    )
    for mate, curve in zip(MATES, curves, strict=True):
        chart.line(_along(curve), mate.lower(), mate)
    return chart, BOTH, "Share of the reads in which the adapter has begun by then."


def _twin_bars(
    chart: Chart, middle: float, width: float, shares: tuple[float, float], words: str
) -> None:
    for side, (mate, share) in enumerate(zip(MATES, shares, strict=True)):
        left = middle + width * (-0.42 + 0.42 * side)
        chart.bar(
            left, left + width * 0.4, share, mate.lower(), f"{mate}, {words}: {percent(share)}"
        )


def _along(values: Sequence[float | None]) -> Points:
    step = -(-len(values) // DRAWN) or 1
    return [(at + 1, values[at]) for at in range(0, len(values), step)]


def _positions(profiles: Sequence[dict[str, Any]]) -> tuple[float, float]:
    return 1, max(2, *(len(profile["positions"]["mean"]) for profile in profiles))


def _shares(counts: Sequence[float]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _binned(histogram: dict[str, int], low: int, width: int, bins: int) -> list[float]:
    counts = [0] * bins
    for length, count in histogram.items():
        counts[(int(length) - low) // width] += count
    return _shares(counts)


def _cumulative(starts: dict[str, int], profile: dict[str, Any]) -> list[float]:
    total, curve = 0, []
    for at in range(len(profile["positions"]["mean"])):
        total += starts.get(str(at + 1), 0)
        curve.append(total / profile["records"])
    return curve


def _as_percent(share: float) -> str:
    return f"{100 * share:.10g} %"


def _edges(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "no reads"
    return f"{number(known[0])} at the first position, {number(known[-1])} at the last"


def _mates(profiles: Sequence[dict[str, Any]], key: str) -> str:
    shares = [percent(profile[key]["fraction"]) for profile in profiles]
    return f"{shares[0]} in R1, {shares[1]} in R2"


def _span(profile: dict[str, Any]) -> str:
    length = profile["length"]
    if length["min"] is None:
        return "no"
    same = length["min"] == length["max"]
    return f"{length['min']}" if same else f"{length['min']} to {length['max']}"
