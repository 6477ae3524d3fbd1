"""Structs that share fields: how several become one, and how values pass between them.

A field of a job is declared in one struct, and other structs have it by inheritance. What passes it
on names no field. Where that happens for each job, a function with a line for each field is made
once, when its module is imported, as `dataclasses` make theirs: a loop takes three times as long.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

NOTHING: Mapping[str, Callable[[Any], object]] = {}


def joined(name: str, *kinds: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """A frozen struct with the fields of several, all by keyword: a struct has a single base.

    The name is that of a constant of the caller's module. Type checkers read a class of that name
    with several bases instead.
    """
    fields = [
        (field.name, field.type, field.default)
        for kind in kinds
        for field in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, omit_defaults=True)


def with_fields(kind: type[S], *others: type[msgspec.Struct]) -> type[S]:
    """A struct with the fields of others behind its own, by keyword. Its name stays.

    Type checkers know the struct without them: whoever has declared them reads them.
    """
    fields = [field for other in others for field in msgspec.structs.fields(other)]
    body: dict[str, Any] = {field.name: field.default for field in fields}
    body["__annotations__"] = {field.name: field.type for field in fields}
    body |= {"__doc__": kind.__doc__, "__module__": kind.__module__}
    make: Any = type(kind)
    made: type[S] = make(kind.__name__, (kind,), body, kw_only=True)
    return made


def values_of(kind: type[msgspec.Struct], source: object) -> dict[str, Any]:
    """The values that an object has for the fields of a struct, by name."""
    return {name: getattr(source, name) for name in kind.__struct_fields__}


def copier(
    kind: type[msgspec.Struct], others: Mapping[str, Callable[[Any], object]] = NOTHING
) -> Callable[[Any, Any], None]:
    """A function of two objects that copies the fields of a struct from the first to the second.

    Where the first has a value for one of the `others`, the second gets what a function makes of
    it.
    """
    lines = [f"target.{name} = source.{name}" for name in kind.__struct_fields__]
    for name in others:
        lines.append(f"if source.{name} is not None:")
        lines.append(f"    target.{name} = {name}(source.{name})")
    made: Callable[[Any, Any], None] = _made("copy(source, target)", lines, dict(others))
    return made


def maker(source: type[msgspec.Struct], made: type[S], *others: str) -> Callable[..., S]:
    """A function that makes a struct from another one, which is its only positional argument.

    It copies the fields that both have. The `others` are given by name instead.
    """
    shared = [
        name
        for name in made.__struct_fields__
        if name in source.__struct_fields__ and name not in others
    ]
    given = [f"{name}=source.{name}" for name in shared] + [f"{name}={name}" for name in others]
    head = f"make(source, *, {', '.join(others)})"
    make: Callable[..., S] = _made(head, [f"return made({', '.join(given)})"], {"made": made})
    return make


def part_of(kind: type[msgspec.Struct], made: type[S]) -> Callable[[Any], S | None]:
    """A function that makes a struct from an object with the fields of its base `kind`.

    It returns None if none of these fields has a value.
    """
    names = kind.__struct_fields__
    unset = " and ".join(f"whole.{name} is None" for name in names) or "True"
    given = ", ".join(f"{name}=whole.{name}" for name in names)
    lines = [f"return None if {unset} else made({given})"]
    part: Callable[[Any], S | None] = _made("part(whole)", lines, {"made": made})
    return part


def is_bare(*kinds: type[msgspec.Struct]) -> Callable[[Any], bool]:
    """A function that tells of an object if it has no value for any field of some structs."""
    names = dict.fromkeys(name for kind in kinds for name in kind.__struct_fields__)
    tests = " and ".join(f"whole.{name} is None" for name in names) or "True"
    told: Callable[[Any], bool] = _made("is_bare(whole)", [f"return {tests}"], {})
    return told


def _made(head: str, lines: list[str], names: dict[str, Any]) -> Any:
    """The function of this head, with these lines."""
    exec("\n    ".join([f"def {head}:", *lines]), names)
    return names[head.partition("(")[0]]
