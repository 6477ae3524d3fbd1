"""Verbs: each that a room declares is answered, once, and its path takes any name."""

from importlib import import_module
from importlib.util import find_spec
from types import NoneType
from typing import Any

import pytest

from zq.answers import all_answers, answering_of
from zq.model.keys import KeyScope
from zq.rooms import ROOMS
from zq.verbs import Verb


def declared() -> list[Verb[Any]]:
    """The verbs that the rooms declare."""
    modules = [f"{room}.{file}" for room in ROOMS for file in ("verbs", "answers")]
    found = [import_module(module) for module in modules if find_spec(module) is not None]
    verbs = (each for module in found for each in vars(module).values() if isinstance(each, Verb))
    return list(dict.fromkeys(verbs))


def test_each_verb_that_a_room_declares_is_answered() -> None:
    verbs = declared()

    assert len(verbs) > 50
    assert set(verbs) == set(all_answers())


def test_no_two_verbs_have_a_place() -> None:
    places = [(verb.method, verb.path) for verb in declared()]

    assert len(places) == len(set(places))


def test_a_verb_that_is_read_as_another_type_is_answered_alike() -> None:
    for verb, answering in all_answers().items():
        assert answering_of(verb.read_as(NoneType)) is answering


@pytest.mark.parametrize(
    ("answer", "created", "status"), [(str, False, 200), (str, True, 201), (NoneType, False, 204)]
)
def test_a_verb_says_how_it_succeeds(answer: type, created: bool, status: int) -> None:
    verb: Verb[Any] = Verb("POST", "/things", KeyScope.MANAGE, answer, created=created)

    assert verb.status == status


def test_names_in_a_path_are_encoded_whole() -> None:
    verb = Verb("GET", "/things/{thing}/parts/{part}", KeyScope.READ, NoneType)

    assert verb.at({"thing": "a/b {c}", "part": "é"}) == "/things/a%2Fb%20%7Bc%7D/parts/%C3%A9"


def test_only_methods_that_change_nothing_twice_are_sent_again() -> None:
    verbs = [Verb(method, "/", KeyScope.READ, NoneType) for method in ("GET", "PUT", "PATCH")]
    others = [Verb(method, "/", KeyScope.READ, NoneType) for method in ("POST", "DELETE")]

    assert all(verb.is_repeatable for verb in verbs)
    assert not any(verb.is_repeatable for verb in others)
