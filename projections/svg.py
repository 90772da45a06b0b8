"""Text in pictures: names are anybody's, and XML cannot hold every character."""

from __future__ import annotations

from html import escape


def svg_text(text: str) -> str:
    """Text as the content of an SVG element; what nobody can see is written as its escape."""
    return escape("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))
