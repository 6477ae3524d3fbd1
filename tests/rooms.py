"""What tests of the core ask of rooms, which may be gone."""

from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import pytest

from zq.model.job import Extras
from zq.rooms import ROOMS

T = TypeVar("T")


def needs(room: str) -> pytest.MarkDecorator:
    """Leave a test out where a room, such as `doors.topics`, is not there."""
    return pytest.mark.skipif(f"zq.{room}" not in ROOMS, reason=f"zq.{room} is not there")


def of_room(room: str, name: str) -> list[ModuleType]:
    """The module `name` among the tests of a room, if the room is there."""
    return [import_module(f"{room}.{name}")] if f"zq.{room}" in ROOMS else []


def joining(batch: Any) -> Extras:
    """The extras of a job that comes with nothing but a batch."""
    return Extras(batch=batch)  # type: ignore[call-arg]
