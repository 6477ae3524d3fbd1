"""The fair key of a call: an argument of the task, or what a function makes of its arguments."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from zq.client.errors import InvalidOption
from zq.features.fair.model import MAX_KEY, key_from

FairKey: TypeAlias = str | Callable[..., Any]
"""For a task: the name of an argument, or a function of its arguments that gives the key. For a
queue: the key, or a function of the payload. A key is text, a number or what is sent as text, such
as a UUID. None gives no key."""


def key_of_calls(
    said: FairKey, task: str, function: Callable[..., Any]
) -> Callable[[Any], str | None]:
    """Reads the fair key of a task's calls from their payloads.

    Raises `InvalidOption` if the task has no such argument, or does not fit the function.
    """
    signature = inspect.signature(function)
    if isinstance(said, str):
        _check_argument(said, task, signature)
        name = said
        return lambda payload: _text(task, _bound(signature, payload).arguments.get(name))
    maker = said
    _check_function(maker, task, signature)

    def made(payload: Any) -> str | None:
        bound = _bound(signature, payload)
        return _text(task, maker(*bound.args, **bound.kwargs))

    return made


def key_of_payloads(said: FairKey, queue: str) -> Callable[[Any], str | None]:
    """Gives the fair key of a queue's payloads. Raises `InvalidOption` for a key that is none."""
    if isinstance(said, str):
        key = _text(queue, said)
        return lambda payload: key
    maker = said
    return lambda payload: _text(queue, maker(payload))


def _bound(signature: inspect.Signature, payload: dict[str, Any]) -> inspect.BoundArguments:
    """The arguments of a call, with the defaults of those that it lacks."""
    bound = signature.bind(*payload["args"], **payload["kwargs"])
    bound.apply_defaults()
    return bound


def _text(place: str, value: object) -> str | None:
    if value is None:
        return None
    key = key_from(msgspec.to_builtins(value))
    if key is None:
        raise InvalidOption(
            f"{place}: fair_key: {value!r} is no text of 1 to {MAX_KEY} characters, and no number"
        )
    return key


def _check_argument(name: str, task: str, signature: inspect.Signature) -> None:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = [each.name for each in signature.parameters.values() if each.kind not in kinds]
    if name not in known:
        raise InvalidOption(
            f"{task}: fair_key: {name!r} is no argument of the task: name one of"
            f" {', '.join(known) or 'its arguments, of which it has none'}, or give a function"
        )


def _check_function(maker: Callable[..., Any], task: str, signature: inspect.Signature) -> None:
    """Refuse a function that the arguments of the task do not fit."""
    alone = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature.parameters.values()
    args = [None for each in parameters if each.kind in alone]
    kwargs = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    try:
        inspect.signature(maker).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidOption(
            f"{task}: fair_key: the function does not take the arguments of the task: {error}"
        ) from None
