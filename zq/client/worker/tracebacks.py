"""Tracebacks without the frames that lead to a handler, for authors of handlers."""

import asyncio
import concurrent.futures
import threading
from pathlib import Path
from traceback import StackSummary, TracebackException

_OURS = f"{Path(__file__).parents[2]}/"
_MACHINERY = (
    *(f"{package.__path__[0]}/" for package in (asyncio, concurrent.futures)),
    threading.__file__,
)
"""The modules that run handlers."""


def traceback_of(error: BaseException) -> str:
    """The traceback of an error and of its causes, without zq's own frames.

    An error that comes from zq alone keeps all of its frames.
    """
    told = TracebackException.from_exception(error)
    _trim(told, set())
    return "".join(told.format())


def _trim(told: TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    _keep(told.stack)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _trim(other, seen)


def _keep(stack: StackSummary) -> None:
    first = 0
    for index, frame in enumerate(stack):
        if frame.filename.startswith(_OURS):
            first = index + 1
        elif not frame.filename.startswith(_MACHINERY):
            break
    kept = [frame for frame in stack[first:] if not frame.filename.startswith(_OURS)]
    if kept:
        stack[:] = kept
