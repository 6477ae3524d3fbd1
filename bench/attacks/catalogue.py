"""All attacks, by the file that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.attacks import bodies, floods, readers, sessions, stored
from bench.attacks.site import Attack

CATALOGUE: Mapping[str, Sequence[Attack]] = {
    "bodies": bodies.ATTACKS,
    "floods": floods.ATTACKS,
    "readers": readers.ATTACKS,
    "stored": stored.ATTACKS,
    "sessions": sessions.ATTACKS,
}


def attacks_named(text: str) -> list[Attack]:
    """The attacks of a comma list of files, or those whose names begin so. Raises ValueError."""
    found: list[Attack] = []
    for word in text.split(","):
        named = CATALOGUE.get(word) or [
            each for each in all_attacks() if each.name.startswith(word)
        ]
        if not named:
            raise ValueError(f"no attack is called {word!r}: choose of {', '.join(CATALOGUE)}")
        found += named
    return found


def all_attacks() -> list[Attack]:
    """Every attack, in the order of the files."""
    return [attack for attacks in CATALOGUE.values() for attack in attacks]
