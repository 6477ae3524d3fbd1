"""Names that are close to a mistyped one."""

from collections.abc import Iterable

MOST = 3


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are like a name, the nearest first. Case makes no difference."""
    from difflib import get_close_matches  # only mistakes need it

    by_folded = {each.casefold(): each for each in sorted(known)}
    return [by_folded[each] for each in get_close_matches(name.casefold(), by_folded, MOST, 0.7)]


def meant(name: str, known: Iterable[str]) -> str:
    """A question about the known names that are like a name: `; did you mean mail?`, or nothing."""
    found = near(name, known)
    return f"; did you mean {' or '.join(found)}?" if found else ""
