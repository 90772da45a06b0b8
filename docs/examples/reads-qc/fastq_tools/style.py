"""How the report looks: one style sheet, with the colours of both schemes as variables."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #ffffff; --ink: #1b2230; --soft: #5a6475; --rule: #dfe3ea;
  --r1: #1f6fc4; --r2: #d9730d; --pair: #7a52c7;
  --good: #1d7f4c; --look: #946200; --poor: #c0322b; --none: #5a6475;
  --a: #2a9157; --c: #2f6fd0; --g: #b98300; --t: #cf4740; --n: #737c8c;
  --tint: 9%;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11151c; --card: #1a202a; --ink: #e8ecf3; --soft: #a0abbd; --rule: #313a48;
    --r1: #62a8f5; --r2: #f6a04d; --pair: #b497f2;
    --good: #58c98c; --look: #e6b34a; --poor: #f4817a; --none: #a0abbd;
    --a: #5fcf92; --c: #78aef8; --g: #e8bd53; --t: #f4817a; --n: #98a3b5;
    --tint: 12%;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%;
}
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 36px; padding-bottom: 8px; }
header h1 { margin: 0 0 6px; font-size: clamp(1.6rem, 5vw, 2.3rem); line-height: 1.15; }
header.good h1 { color: var(--good); }
header.look h1 { color: var(--look); }
header.poor h1 { color: var(--poor); }
header p { margin: 0; color: var(--soft); }
header .kicker { font-weight: 600; margin-bottom: 6px; }
h2 { margin: 36px 0 12px; font-size: 1.2rem; }
h3 { margin: 0; font-size: 1rem; }
code { font: 0.92em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
small { display: block; color: var(--soft); font-size: 0.8rem; font-weight: 400; }
.r1 { color: var(--r1); } .r2 { color: var(--r2); }
.cards {
  display: grid; gap: 12px; margin: 20px 0 0;
  grid-template-columns: repeat(auto-fit, minmax(165px, 1fr));
}
.cards div, figure, table {
  background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
}
.cards div { padding: 12px 14px; }
.cards dt { color: var(--soft); font-size: 0.85rem; }
.cards dd { margin: 2px 0 0; font-size: 1.05rem; font-weight: 650; }
.cards dd span { white-space: nowrap; }
.cards dd > span + span { margin-left: 0.25em; }
.cards small { font-size: 0.78rem; }
table { width: 100%; border-collapse: separate; border-spacing: 0; overflow: hidden; }
th, td { padding: 9px 14px; text-align: left; vertical-align: top; }
tbody th { font-weight: 600; }
tbody tr > * { border-top: 1px solid var(--rule); }
thead th { color: var(--soft); font-size: 0.8rem; font-weight: 600; }
.checks td { white-space: nowrap; }
.badge {
  display: inline-block; padding: 1px 10px; border-radius: 99px; font-size: 0.85rem;
  font-weight: 650; white-space: nowrap; color: var(--tone);
  background: color-mix(in srgb, var(--tone) 14%, transparent);
}
.badge.good { --tone: var(--good); } .badge.look { --tone: var(--look); }
.badge.poor { --tone: var(--poor); } .badge.none { --tone: var(--none); }
.figures { display: grid; gap: 14px; grid-template-columns: repeat(2, minmax(0, 1fr)); }
figure { margin: 0; padding: 14px 16px 12px; break-inside: avoid; }
figure > svg { display: block; width: 100%; height: auto; margin-top: 8px; }
figure p { margin: 6px 0 0; color: var(--soft); font-size: 0.85rem; }
figcaption { display: flex; flex-wrap: wrap; gap: 4px 16px; justify-content: space-between; }
figcaption ul {
  display: flex; flex-wrap: wrap; gap: 2px 12px; margin: 0; padding: 0; list-style: none;
  color: var(--soft); font-size: 0.82rem; align-items: center;
}
figcaption li svg { width: 18px; height: 10px; margin-right: 5px; }
svg text { fill: var(--soft); font-size: 11px; }
svg .label { font-size: 11.5px; }
svg .none { font-size: 14px; text-anchor: middle; }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--rule); stroke-width: 1; }
.axis { stroke: var(--soft); stroke-width: 1; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.line.dashed { stroke-width: 1.4; stroke-dasharray: 3 3; opacity: 0.85; }
.band { fill: currentColor; stroke: none; opacity: 0.3; }
.band.faint { opacity: 0.16; }
.bar, .dot { fill: currentColor; }
.pair { color: var(--pair); }
.zero { color: var(--soft); stroke-width: 1; }
.base-a { color: var(--a); } .base-c { color: var(--c); } .base-g { color: var(--g); }
.base-t { color: var(--t); } .base-n { color: var(--n); }
.zone-good { fill: color-mix(in srgb, var(--good) var(--tint), transparent); }
.zone-look { fill: color-mix(in srgb, var(--look) var(--tint), transparent); }
.zone-poor { fill: color-mix(in srgb, var(--poor) var(--tint), transparent); }
footer { padding-top: 28px; padding-bottom: 40px; color: var(--soft); font-size: 0.85rem; }
@media (max-width: 1140px) {
  .cards { grid-template-columns: repeat(3, minmax(0, 1fr)); }
}
@media (max-width: 760px) {
  .figures { grid-template-columns: minmax(0, 1fr); }
  header, main, footer { padding-left: 12px; padding-right: 12px; }
  header { padding-top: 22px; }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
  .cards dd { font-size: 1rem; }
  figure { padding: 12px 10px 10px; }
  th, td { padding: 8px; }
  table { font-size: 0.9rem; }
  svg text, svg .label { font-size: 13.5px; }
}
@media print {
  body { background: none; }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
"""
