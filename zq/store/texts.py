"""Reads the named texts of `.sql` files, in whichever language of a store they are.

A text begins with a line ``-- name: its_name``, and words in braces stand for constants. A text
that reads alike in every store is in a file without the name of one: `zq/store/tick.sql` beside
`zq/store/sqlite/tick.sql`, and a room's `tick.sql` beside its `sqlite_tick.sql`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path

import msgspec

from zq.model.aging import AGES
from zq.model.ids import EPOCH_MS, LOW_BITS
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace, Scope

SHARED = {
    **{status.name.lower(): str(status.value) for status in Status},
    **{f"while_{scope.name.lower()}": str(scope.value) for scope in Scope},
    **{f"in_{space.name.lower()}": str(space.value) for space in KeySpace},
    "key_bits": str(LOW_BITS),
    "key_epoch": str(EPOCH_MS),
    "ages": str(AGES),
    "no_lease": "holder = NULL, claimant = NULL, lease_until = NULL",
}
"""The constants that mean one thing in every store."""


def columns_of(
    struct: type[msgspec.Struct],
    named: Mapping[str, str],
    other: str = "{}",
    *,
    required: bool = False,
) -> str:
    """The columns of jobs that make a struct, in the order of its fields.

    `named` has those that differ from the names of their fields, and `other` the form of all
    others. With `required`, only the fields without a default are read.
    """
    fields = [field for field in msgspec.structs.fields(struct) if field.required or not required]
    return ", ".join(named.get(field.name) or other.format(field.name) for field in fields)


def folder(package: str) -> Path:
    return Path(import_module(package).__path__[0])


def named_texts(store: str, module: str, constants: Mapping[str, str]) -> dict[str, str]:
    """The texts of a store's file, by name, with those that every store has.

    `zq.store.sqlite.tick` has those of its `tick.sql` and of `zq/store/tick.sql`. One of these
    files may be missing.
    """
    package, _, name = module.rpartition(".")
    own = folder(package) / f"{name}.sql"
    if package == f"zq.store.{store}":
        shared = own.parent.with_name(own.name)
    else:
        shared = own.with_name(own.name.removeprefix(f"{store}_"))
    files = [file for file in dict.fromkeys((shared, own)) if file.exists()]
    if not files:
        raise FileNotFoundError(own)
    text = "\n".join([file.read_text(encoding="utf-8") for file in files])
    found: dict[str, str] = {}
    for block in text.split("-- name: ")[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        found[name.strip()] = "\n".join(lines).strip().format_map(constants)
    return found


def texts_of_room(
    store: str, room: str, load: Callable[[str], Mapping[str, str]]
) -> dict[str, str]:
    """What a room has for the tick of a store, by name. `load` reads one file."""
    found: dict[str, str] = {}
    files = {file.stem.removeprefix(f"{store}_") for file in folder(room).glob("*.sql")}
    for name in sorted(file for file in files if file.startswith("tick")):
        found |= load(f"{room}.{store}_{name}")
    return found


def texts_of_rooms(
    store: str, rooms: Iterable[str], load: Callable[[str], dict[str, str]]
) -> dict[str, str]:
    """What rooms have for the tick of a store, by name.

    It is in `tick.sql`, `{store}_tick.sql` and the like with a further word. `load` reads one
    file. A text that begins with APPEND makes the records that are appended to a log.
    """
    found: dict[str, str] = {}
    for room in rooms:
        found |= texts_of_room(store, room, load)
    append = load(f"zq.store.{store}.log")["append"]
    for name, text in found.items():
        if text.startswith("APPEND "):
            found[name] = append.replace("SOURCE", text.removeprefix("APPEND "))
    return found


def merged(texts: Mapping[str, str], free: int, bounded: int) -> str:
    """The text of a claim of so many queues, of which the last ones have bounds."""
    kinds = [texts["claim_arm"]] * free + [texts["claim_bounded_arm"]] * bounded
    arms = [
        arm.replace(":queue", f":q{index}").replace(":most", f":m{index}")
        for index, arm in enumerate(kinds)
    ]
    return texts["claim_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))


def merged_lines(texts: Mapping[str, str], arm: str, count: int) -> str:
    """The text that merges the open lines of so many queues, or of lines that age alike."""
    sql = re.sub(":(queue|aging_ms)", ":value", texts[arm])
    arms = [sql.replace(":value", f":v{index}") for index in range(count)]
    return texts["lines_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))
