"""The parameters of a function: calls become payloads, and payloads become arguments again."""

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Never, NoReturn, Optional, Unpack, get_args, get_origin

import msgspec

from zq.client.checks import CallCheck, held_to
from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import JSON
from zq.client.hints import ComesLater, Unevaluated, hints_of
from zq.client.payloads import call_of, declared
from zq.client.types import ByMsgspec, Convert, forms_of
from zq.client.unions import shown

RESULT: Any = object()
"""The place of a result that is not known yet, in a call that is checked. It is never sent."""


class Signature:
    """The parameters of a function: checks calls, and turns payloads into arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        checks: bool = True,
        place: Mapping[str, Any] | None = None,
    ) -> None:
        """With `checks`, calls are held to plain annotations: see `zq.client.checks`.

        `place` has the names of the blocks around the function. Raises `InvalidOption` for an
        annotation whose values JSON cannot give back.
        """
        self._function = function
        self._checks = checks
        self._place = place
        self._signature = inspect.signature(function)
        kinds = self._signature.parameters.values()
        positional = [each for each in kinds if each.kind in (each.POSITIONAL_ONLY, _EITHER)]
        needed = [each for each in positional if each.default is each.empty]
        plain_kinds = all(each.kind is not each.KEYWORD_ONLY for each in kinds)
        # Calls with positional arguments only are the most common, and cheap to check.
        self._fit = range(len(needed), len(positional) + 1) if plain_kinds else range(0)
        variable = {each.kind for each in kinds}
        names = {name for name, each in self._signature.parameters.items() if each.kind in _BY_NAME}
        self._names = None if _NAMES in variable else names
        self._types: _Types | None = None
        with contextlib.suppress(ComesLater):
            self._types = self._read()

    def __reduce__(self) -> tuple[Any, tuple[Callable[..., Any]]]:
        return partial(Signature, checks=self._checks), (self._function,)

    def types(self) -> "_Types":
        """The types that the annotations name. Raises `InvalidOption` if a name does not exist."""
        if self._types is None:
            try:
                self._types = self._read()
            except ComesLater as name:
                raise InvalidOption(f"{self._name}: {name} is not defined yet") from None
        return self._types

    def is_known(self, payload: Any) -> bool:
        """True if the function has parameters for the named arguments in a payload.

        If not, the call may be one of a later version of the program. Too many arguments without
        names are a mistake instead, which `arguments` refuses: a name tells what was meant.
        """
        _, kwargs = call_of(payload)
        return not kwargs or self._names is None or kwargs.keys() <= self._names

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The payload of a call.

        Raises TypeError if the function does not accept the arguments, and `InvalidPayload` if one
        is not of its annotated type.
        """
        if kwargs or len(args) not in self._fit:
            self._bound(args, kwargs)
        if self._checks and (args or kwargs):
            (self._types or self.types()).check(args, kwargs)
        return {"args": args, "kwargs": kwargs}

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The payload of a call with all arguments by name, also those with defaults.

        Positional-only parameters are kept as positional arguments.
        """
        bound = self._bound(args, kwargs)
        if self._checks:
            self.types().check(args, kwargs)
        bound.apply_defaults()
        if any(each.kind not in _BY_NAME for each in self._signature.parameters.values()):
            return {"args": bound.args, "kwargs": bound.kwargs}
        return {"args": (), "kwargs": bound.arguments}

    def arguments(self, payload: Any) -> tuple[list[Any], dict[str, Any]]:
        """The call in a payload: see `call_of`. Raises `InvalidPayload`."""
        args, kwargs = call_of(payload)
        types = self._types or self.types()
        fits = not kwargs and len(args) in self._fit
        if fits:
            found = args if types.places is None else types.places(args)
            if found is not None:
                return found, kwargs
        # One by one, which tells the name of an argument that does not fit.
        bound = None
        if not fits or types.converters:
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise InvalidPayload(
                    f"the payload does not fit {self._name}: {error} (an object holds named"
                    " arguments, a list positional ones)"
                ) from error
        if self._checks:
            types.check(args, kwargs)
        if bound is None:
            return args, kwargs
        for name, convert in types.converters.items():
            if name in bound.arguments:
                bound.arguments[name] = self._converted(name, convert, bound.arguments[name])
        return list(bound.args), bound.kwargs

    def result(self) -> Convert | None:
        """A converter from a stored result to the annotated type of the function's result."""
        return self.types().result

    def following(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], giver: str, gives: frozenset[str]
    ) -> dict[str, Any]:
        """The payload of a call whose first argument is what `giver` gives, in one of these forms.

        Raises the errors of a call, and `InvalidOption` if the function takes no such argument.
        """
        payload = self.payload((RESULT, *args), kwargs)
        first = next(iter(self._signature.parameters.values()))
        hint = self.types().hints.get(first.name, Any)
        if not gives & forms_of(hint):
            words = " or ".join(sorted(gives))
            raise InvalidOption(
                f"{self._name} takes {shown(hint)} as its first argument, and {giver} gives {words}"
            )
        return {**payload, "args": args}

    @property
    def gives(self) -> frozenset[str]:
        """The forms of the function's results in JSON."""
        return forms_of(_awaited(self.types().hints.get("return", Any)))

    def blamed(self, error: InvalidPayload, payloads: Iterable[Any]) -> InvalidPayload:
        """The error for the first argument of these calls that cannot be sent, with its name."""
        for payload in payloads:
            bound = self._signature.bind(*payload["args"], **payload["kwargs"])
            for name, value in bound.arguments.items():
                try:
                    JSON.encode(value)
                except InvalidPayload as found:
                    return InvalidPayload(f"{self._name}: {name}: {found.message}")
        return error

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}") from None

    @property
    def _name(self) -> str:
        return self._function.__qualname__

    def _read(self) -> "_Types":
        """Read the annotations. Raises `ComesLater`, and `InvalidOption`."""
        hints = hints_of(self._function, self._place)
        converters: dict[str, Convert] = {}
        for name, parameter in self._signature.parameters.items():
            if name not in hints:
                continue
            hint = hints[name] = _or_none(hints[name], parameter)
            several = _SEVERAL.get(parameter.kind, _one)
            if get_origin(hint) is Unpack and parameter.kind is _NAMES:
                # A TypedDict has all of these arguments.
                (hint,), hints[name], several = get_args(hint), Any, _one
            what = f"{self._name}: the parameter {name!r} of the type {shown(hint)}"
            convert = declared(what, hint, self._function)
            if convert is not None:
                converters[name] = several(convert)
        places = [each for each in self._signature.parameters.values() if each.kind in _BY_PLACE]
        wanted = {
            each.name: held_to(hints.get(each.name, Any)) if self._checks else Any
            for each in places
        }
        result = _awaited(hints.get("return"))
        what = f"{self._name}: its result of the type {shown(result)}"
        ends = result in (NoReturn, Never)
        return _Types(
            hints,
            CallCheck(self._name, self._signature, hints),
            converters,
            None if ends else declared(what, result, self._function),
            _Places.of(wanted, converters),
        )

    def _converted(self, name: str, convert: Convert, value: Any) -> Any:
        try:
            return convert(value)
        except InvalidPayload as error:
            raise InvalidPayload(f"{self._name}: {name}: {error.message}") from error


class _Types(NamedTuple):
    """The annotations of a function, evaluated: for calls, parameters by name, and the result.

    `hints` are the annotations themselves.
    """

    hints: Mapping[str, Any]
    check: CallCheck
    converters: Mapping[str, Convert]
    result: Convert | None
    places: "_Places | None"


class _Places(NamedTuple):
    """Converts the arguments of a call in their places at once, which is the fastest way."""

    struct: Any
    others: list[tuple[int, Convert]]
    """The places of arguments that msgspec does not convert."""
    options: dict[str, Any]

    @classmethod
    def of(cls, wanted: Mapping[str, Any], converters: Mapping[str, Convert]) -> "_Places | None":
        """The converter of a call's arguments; None if nothing has to be converted. `wanted` are
        plain types."""
        fields: list[Any] = []
        others: list[tuple[int, Convert]] = []
        for place, (name, kind) in enumerate(wanted.items()):
            convert = converters.get(name)
            if isinstance(convert, ByMsgspec):
                kind = convert.type
            elif convert is not None:
                others.append((place, convert))
            fields.append((name, kind, msgspec.UNSET))
        if not others and all(kind is Any for _, kind, _ in fields):
            return None
        # An option more takes msgspec longer than two numbers.
        options = {"str_keys": True} if converters else {}
        return cls(msgspec.defstruct("Arguments", fields, array_like=True), others, options)

    def __call__(self, args: list[Any]) -> list[Any] | None:
        """The converted arguments of a call; None if one of them does not fit."""
        try:
            read = msgspec.convert(args, self.struct, **self.options)
            found = list(msgspec.structs.astuple(read)[: len(args)])
            for place, convert in self.others:
                if place < len(found):
                    found[place] = convert(found[place])
        except (InvalidPayload, msgspec.ValidationError):
            return None
        return found


def _or_none(hint: Any, parameter: inspect.Parameter) -> Any:
    """The type of a parameter. A default of None makes None a value, whatever is annotated."""
    if parameter.default is not None or isinstance(hint, Unevaluated) or hint is Any:
        return hint
    return Optional[hint]  # noqa: UP045


def _awaited(hint: Any) -> Any:
    """The type of what a function returns in the end."""
    return get_args(hint)[-1] if get_origin(hint) in (Awaitable, Coroutine) else hint


def _one(convert: Convert) -> Convert:
    return convert


def _places(convert: Convert) -> Convert:
    """The converter for the values of `*args`."""
    return lambda values: tuple(map(convert, values))


def _names(convert: Convert) -> Convert:
    """The converter for the values of `**kwargs`."""
    return lambda values: {name: convert(value) for name, value in values.items()}


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_BY_NAME = (_EITHER, inspect.Parameter.KEYWORD_ONLY)
_BY_PLACE = (_EITHER, inspect.Parameter.POSITIONAL_ONLY)
_PLACES, _NAMES = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_SEVERAL: Mapping[Any, Callable[[Convert], Convert]] = {_PLACES: _places, _NAMES: _names}
