"""The names in annotations, as they are known where a function is declared."""

import dis
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, SimpleNamespace
from typing import Any

_DEFINES = {"STORE_NAME", "STORE_GLOBAL"}


class Unsupported(Exception):
    """An annotation whose values JSON cannot give back. The message says why, and what to write."""


class ComesLater(Exception):
    """An annotation names what its module defines further below."""


def hints_of(function: Any, block: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The annotations of a function by the names of its parameters, and `return`.

    `block` has names of the block where the function is defined, beside those of its module. An
    annotation that cannot be evaluated is an `Unevaluated`.
    """
    known = getattr(inspect.unwrap(function), "__globals__", {})
    found: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        one = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= typing.get_type_hints(one, known, dict(block or {}), include_extras=True)
        except Exception as error:
            found[name] = Unevaluated(annotation, error)
    return found


class Unevaluated:
    """An annotation that raises this error."""

    def __init__(self, annotation: Any, error: Exception) -> None:
        self.annotation = annotation
        self.error = error

    def __str__(self) -> str:
        return str(self.annotation)


def comes_later(error: Exception, function: Callable[..., Any] | None) -> bool:
    """True if the name that is missing is one that the function's module defines further below."""
    if not isinstance(error, NameError) or function is None:
        return False
    running = [each for each in _frames_of(function) if each.f_code.co_name == "<module>"]
    return any(error.name in _defined_later(frame) for frame in running)


def unreadable(error: Exception) -> str:
    """Why an annotation that raises this error cannot be read, and what to do."""
    if not isinstance(error, NameError):
        return f"{type(error).__name__}: {error}"
    return (
        f"{error.name!r} is not there when the program runs: import it outside of `if"
        " TYPE_CHECKING`, or define it above, in the module"
    )


def _frames_of(function: Callable[..., Any]) -> Iterator[FrameType]:
    """The code of a function's module that is being executed, the innermost first."""
    module = getattr(inspect.unwrap(function), "__globals__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is module:
            yield frame
        frame = frame.f_back


def _defined_later(frame: FrameType) -> set[str]:
    """The names that the code of a module defines after the point that it has come to."""
    return {
        step.argval
        for step in dis.get_instructions(frame.f_code)
        if step.opname in _DEFINES and step.offset > frame.f_lasti
    }


def blocks_around(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The names of the blocks of a function's module that are being executed, the inner ones first.

    The function is defined in one of them, or right in its module.
    """
    known: dict[str, Any] = {}
    for frame in _frames_of(function):
        if frame.f_code.co_name != "<module>":
            known = {**frame.f_locals, **known}
    return known
