"""Reads the named texts of `.sql` files, in whichever language of a store they are.

A text begins with a line ``-- name: its_name``, and words in braces stand for constants.
"""

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
    """The folder of a package."""
    return Path(import_module(package).__path__[0])


def named_texts(module: str, constants: Mapping[str, str]) -> dict[str, str]:
    """The texts of one file, by name. `zq.store.sqlite.tick` has those of its `tick.sql`."""
    package, _, name = module.rpartition(".")
    text = (folder(package) / f"{name}.sql").read_text(encoding="utf-8")
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
    for file in sorted(folder(room).glob(f"{store}_tick*.sql")):
        found |= load(f"{room}.{file.stem}")
    return found


def texts_of_rooms(
    store: str, rooms: Iterable[str], load: Callable[[str], dict[str, str]]
) -> dict[str, str]:
    """What rooms have for the tick of a store, by name.

    It is in `{store}_tick.sql` and `{store}_tick_….sql`, and `load` reads one file. A text that
    begins with APPEND makes the records that are appended to a log.
    """
    found: dict[str, str] = {}
    for room in rooms:
        found |= texts_of_room(store, room, load)
    append = load(f"zq.store.{store}.log")["append"]
    for name, text in found.items():
        if text.startswith("APPEND "):
            found[name] = append.replace("SOURCE", text.removeprefix("APPEND "))
    return found
