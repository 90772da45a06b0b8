"""Makes data/R1.fq.gz and data/R2.fq.gz: simulated paired reads, the same bytes every time.

    python generate.py [FOLDER]

A short made-up genome is cut into fragments, which are read from both ends. Quality falls along
the read, faster in R2; one cycle of R1 is bad; some fragments are shorter than a read, so the
adapter shows; some are copied; a few reads were trimmed.
"""

from __future__ import annotations

import gzip
import io
import random
import sys
from pathlib import Path

SEED = 20240229
PAIRS = 3000
READ = 101
GENOME = 60_000
COPIED = 0.09
TRIMMED = 0.2
BAD_CYCLE = 38
ADAPTERS = ("AGATCGGAAGAGCACACGTCTGAACTCCAGTCA", "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT")
LEVELS = (2, 6, 15, 22, 27, 33, 37, 40)
COMPLEMENT = str.maketrans("ACGT", "TGCA")

# Only random() of the generator is promised to stay the same in every Python release.
Chance = random.Random


def bell(chance: Chance, mean: float, spread: float) -> float:
    """A value around the mean, close to normal, from additions alone."""
    return mean + spread * (sum(chance.random() for _ in range(12)) - 6)


def genome(chance: Chance) -> str:
    """A sequence whose GC content wanders between about 0.35 and 0.6."""
    bases, gc = [], 0.46
    for at in range(GENOME):
        if at % 200 == 0:
            gc = min(0.60, max(0.34, gc + 0.08 * (chance.random() - 0.5)))
        strong = chance.random() < gc
        bases.append(("GC" if strong else "AT")[chance.random() < 0.5])
    return "".join(bases)


def fragment(chance: Chance, source: str) -> str:
    """A piece of the genome from either strand, most often longer than a read."""
    size = max(30, int(bell(chance, 210, 62)))
    start = int(chance.random() * (len(source) - size))
    piece = source[start : start + size]
    return piece if chance.random() < 0.5 else piece.translate(COMPLEMENT)[::-1]


def qualities(chance: Chance, mate: int) -> list[int]:
    """Phred scores of one read, from the levels a sequencer uses."""
    fall = (7.0, 13.0)[mate]
    own = bell(chance, 0, 2.2)
    scores = []
    for at in range(READ):
        ramp = min(1.0, 0.72 + at / 18)
        aim = 38.5 * ramp - fall * (at / READ) ** 2 + own + bell(chance, 0, 3.0)
        aim -= 9 if (mate, at + 1) == (0, BAD_CYCLE) else 0
        scores.append(min(LEVELS, key=lambda level: abs(level - aim)))
    return scores


def observe(chance: Chance, template: str, scores: list[int], mate: int) -> tuple[str, str]:
    """What the sequencer reports of a template: sequence and quality line."""
    called, line = [], []
    for at, (base, score) in enumerate(zip(template, scores, strict=True)):
        bad = (mate, at + 1) == (0, BAD_CYCLE)
        call = base
        if chance.random() < (0.03 if bad else 0.0006):
            call = "N"
        elif chance.random() < 10 ** (-score / 10):
            call = "ACGT".replace(base, "")[int(chance.random() * 3)]
        called.append(call)
        line.append(chr(33 + (2 if call == "N" else score)))
    return "".join(called), "".join(line)


def read(chance: Chance, piece: str, mate: int) -> tuple[str, str]:
    """One end of a fragment, with the adapter behind a short one, perhaps trimmed."""
    towards = piece if mate == 0 else piece.translate(COMPLEMENT)[::-1]
    template = (towards + ADAPTERS[mate] + "A" * READ)[:READ]
    sequence, quality = observe(chance, template, qualities(chance, mate), mate)
    if chance.random() < TRIMMED:
        keep = 40 + int(chance.random() * (READ - 40))
        return sequence[:keep], quality[:keep]
    return sequence, quality


def simulate(seed: int = SEED, pairs: int = PAIRS) -> tuple[bytes, bytes]:
    """The text of R1 and of R2."""
    chance = random.Random(seed)
    source = genome(chance)
    pieces: list[str] = []
    texts: tuple[list[str], list[str]] = ([], [])
    for number in range(1, pairs + 1):
        copied = pieces and chance.random() < COPIED
        piece = pieces[int(chance.random() * len(pieces))] if copied else fragment(chance, source)
        pieces.append(piece)
        for mate, text in enumerate(texts):
            sequence, quality = read(chance, piece, mate)
            text.append(f"@sim:{number} {mate + 1}:N:0\n{sequence}\n+\n{quality}\n")
    return "".join(texts[0]).encode(), "".join(texts[1]).encode()


def pack(text: bytes) -> bytes:
    """The text as gzip without name and time."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as out:
        out.write(text)
    return packed.getvalue()


def main(folder: Path) -> None:
    """Write both files into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("R1.fq.gz", "R2.fq.gz"), simulate(), strict=True):
        (folder / name).write_bytes(pack(text))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
