"""The report: one HTML file that needs no other, for screens of any width, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from fastq_tools.figures import Figure
from fastq_tools.style import STYLE
from fastq_tools.verdicts import GOOD, LOOK, NONE, POOR, Finding, number, percent

WORDS: Final = {GOOD: "good", LOOK: "look", POOR: "poor", NONE: "no data"}
SIGNS: Final = {GOOD: "✓", LOOK: "!", POOR: "✕", NONE: "·"}
COUNTED: Final = {GOOD: "good", LOOK: "to look at", POOR: "poor", NONE: "without data"}
HEADLINES: Final = {
    GOOD: "These reads look good.",
    LOOK: "Usable, with something to look at.",
    POOR: "Something is wrong with these reads.",
    NONE: "There are no reads here.",
}


def page(
    title: str,
    summary: dict[str, Any],
    findings: Sequence[Finding],
    figures: Sequence[Figure],
) -> str:
    """The whole HTML document. Everything that comes from the files is escaped."""
    body = "\n".join(
        [
            _header(title, summary, findings),
            "<main>",
            _cards(summary),
            _checks(findings),
            _mismatches(summary["pair"]),
            '<section aria-labelledby="charts"><h2 id="charts">Charts</h2><div class="figures">',
            *(_figure(figure) for figure in figures),
            "</div></section>",
            _frequent(summary),
            _sources(summary),
            "</main>",
            "<footer>Made by the statelog example plan <code>reads-qc</code>. The same numbers are"
            " in <code>summary.json</code> beside this file.</footer>",
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def badge(verdict: str) -> str:
    """A verdict as a sign and a word, so that colour is not needed to read it."""
    return (
        f'<span class="badge {verdict}"><span aria-hidden="true">{SIGNS[verdict]}</span>'
        f" {WORDS[verdict]}</span>"
    )


def _header(title: str, summary: dict[str, Any], findings: Sequence[Finding]) -> str:
    verdict = summary["verdict"]
    names = " and ".join(
        f"<code>{escape(mate['source']['name'])}</code>" for mate in summary["mates"].values()
    )
    counted = ", ".join(
        f"{count} {COUNTED[one]}"
        for one in (GOOD, LOOK, POOR, NONE)
        if (count := sum(finding.verdict == one for finding in findings))
    )
    return (
        f'<header class="{verdict}"><p class="kicker">{escape(title)}</p>'
        f"<h1>{HEADLINES[verdict]}</h1><p>{names}. Of {len(findings)} checks: {counted}.</p>"
        "</header>"
    )


def _cards(summary: dict[str, Any]) -> str:
    mates = list(summary["mates"].values())
    cards = [
        ("read pairs", number(summary["pair"]["compared"]), ""),
        ("bases", number(sum(mate["bases"] for mate in mates)), "R1 and R2 together"),
        ("mean quality", *_two([number(mate["quality"]["mean"]) for mate in mates])),
        ("GC", *_two([percent(mate["gc"]["fraction"]) for mate in mates])),
        ("duplicates", *_two([percent(mate["duplicates"]["fraction"]) for mate in mates])),
        ("with adapter", *_two([percent(mate["adapter"]["fraction"]) for mate in mates])),
    ]
    shown = "".join(
        f"<div><dt>{label}</dt><dd>{value}<small>{note}</small></dd></div>"
        for label, value, note in cards
    )
    return f'<dl class="cards">{shown}</dl>'


def _two(values: Sequence[str]) -> tuple[str, str]:
    value = f'<span class="r1">{values[0]}</span> <span class="r2">{values[1]}</span>'
    return value, '<span class="r1">R1</span> · <span class="r2">R2</span>'


def _checks(findings: Sequence[Finding]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(finding.label)}<small>{escape(finding.limits)}</small></th>'
        f"<td>{escape(finding.r1)}</td><td>{escape(finding.r2)}</td>"
        f"<td>{badge(finding.verdict)}</td></tr>"
        for finding in findings
    )
    return (
        '<section aria-labelledby="checks"><h2 id="checks">Checks</h2><table class="checks">'
        '<thead><tr><th scope="col">Check</th><th scope="col">R1</th><th scope="col">R2</th>'
        f'<th scope="col">Verdict</th></tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _mismatches(pair: dict[str, Any]) -> str:
    if not pair["mismatches"]:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{number(row["record"])}</th><td><code>{escape(row["r1"])}</code>'
        f"</td><td><code>{escape(row['r2'])}</code></td></tr>"
        for row in pair["mismatches"]
    )
    return (
        '<section aria-labelledby="names"><h2 id="names">Names that differ</h2>'
        f"<p>{number(pair['mismatched'])} of {number(pair['compared'])} pairs have two names."
        " The first of them:</p><table><thead><tr>"
        '<th scope="col">Record</th><th scope="col">R1</th><th scope="col">R2</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _figure(figure: Figure) -> str:
    chart, key, hint = figure
    legend = "".join(
        f'<li><svg viewBox="0 0 18 10" aria-hidden="true">{_swatch(css)}</svg>{escape(words)}</li>'
        for css, words in key
    )
    return (
        f"<figure><figcaption><h3>{escape(chart.title)}</h3><ul>{legend}</ul></figcaption>"
        f"{chart.svg()}<p>{escape(hint)}</p></figure>"
    )


def _swatch(css: str) -> str:
    if css.endswith(("faint", "half")):
        return f'<rect class="band {css}" width="18" height="10" rx="2"/>'
    return f'<polyline class="line {css}" points="0,5 18,5"/>'


def _frequent(summary: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{mate}</th><td>{number(row["count"])}</td>'
        f"<td><code>{escape(row['sequence'])}</code></td></tr>"
        for mate, counts in summary["mates"].items()
        for row in counts["duplicates"]["most_frequent"]
    )
    if not rows:
        return ""
    return (
        '<section aria-labelledby="frequent"><h2 id="frequent">Most frequent beginnings</h2>'
        '<table><thead><tr><th scope="col">Mate</th><th scope="col">Reads</th>'
        f'<th scope="col">First bases</th></tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _sources(summary: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{mate}</th><td><code>{escape(counts["source"]["path"])}</code>'
        f"<small>{number(counts['source']['bytes'])} bytes, {counts['source']['format']}</small>"
        f"</td><td><code>{counts['source']['sha256']}</code></td></tr>"
        for mate, counts in summary["mates"].items()
    )
    return (
        '<section aria-labelledby="files"><h2 id="files">Files</h2><table><thead><tr>'
        '<th scope="col">Mate</th><th scope="col">File</th><th scope="col">SHA-256</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></section>"
    )
