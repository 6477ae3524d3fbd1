"""Puts a text between two markers of a file."""

from __future__ import annotations

from pathlib import Path


def write_between(path: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`; ValueError without both."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, begun, rest = path.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{path} has no {begin.strip()} … {end}")
    path.write_text(f"{before}{begin}{text.rstrip()}\n{end}{after}")
