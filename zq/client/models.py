"""Types that pydantic converts to, in programs that use it: its models, and its constraints.

Models are written by their aliases, without what they compute, and read from that as JSON.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from zq.client.errors import InvalidPayload
from zq.client.hints import Unsupported
from zq.client.unions import clash_in, is_model

_PACKAGES = ("annotated_types", "pydantic")

SECRET = (
    "it has a secret (SecretStr or SecretBytes), which would be stored readable or as stars: send a"
    " name by which the worker finds the secret"
)


def needs_pydantic(annotation: Any) -> bool:
    """True if an annotation names a model, or a constraint in the way of pydantic."""
    if get_origin(annotation) is Annotated:
        base, *notes = get_args(annotation)
        known = any(type(note).__module__.partition(".")[0] in _PACKAGES for note in notes)
        return known or needs_pydantic(base)
    if is_model(annotation):
        return True
    return get_origin(annotation) is not Literal and any(map(needs_pydantic, get_args(annotation)))


def model_converter(annotation: Any) -> Callable[[Any], Any]:
    """The function that has pydantic make a value of data. It raises `InvalidPayload`.

    Raises `Unsupported`.
    """
    try:
        from pydantic import TypeAdapter, ValidationError
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise Unsupported(
            "its constraints are those of pydantic, which is not installed: install it, or use"
            " msgspec.Meta"
        ) from None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    except PydanticUserError as error:
        raise Unsupported(f"pydantic cannot use it: {error}") from None
    if _has_secret(adapter.json_schema):
        raise Unsupported(SECRET)
    for model in _models(annotation, set()):
        if fault := _fault(model):
            raise Unsupported(fault)

    def convert(value: Any) -> Any:
        # As JSON: a strict model takes a text for a time from JSON only.
        try:
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as error:
            raise InvalidPayload(_said(error)) from error

    return convert


def _said(error: Any) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in found
    )


def _models(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """The models in an annotation, and in the fields of its classes."""
    if isinstance(annotation, type) and annotation not in seen:
        seen.add(annotation)
        if is_model(annotation):
            yield annotation
            fields: Any = annotation
            for field in fields.model_fields.values():
                yield from _models(field.annotation, seen)
        elif hasattr(annotation, "__annotations__"):
            for hint in get_type_hints(annotation, include_extras=True).values():
                yield from _models(hint, seen)
    for part in get_args(annotation):
        yield from _models(part, seen)


def _fault(model: Any) -> str | None:
    """Why a model would not read what it has written; None if it would."""
    for name, field in model.model_fields.items():
        where = f"the field {name} of {model.__name__}"
        clash = None if field.discriminator else clash_in(field.annotation)
        if clash is not None:
            return f"{where}: {clash}"
        if field.exclude is True:
            return f"{where} has exclude=True, and would not be sent: take that away"
        written = field.serialization_alias or name
        read = _read_as(name, field.validation_alias, model.model_config)
        if read and written not in read:
            return (
                f"{where} is written as {written!r} and read as {' or '.join(map(repr, read))}:"
                " give it one alias for both, or populate_by_name and no serialization_alias"
            )
    return None


def _read_as(name: str, alias: Any, config: Any) -> list[str]:
    """The names by which a model reads a field; empty if it reads it from within another one."""
    if alias is None:
        return [name]
    choices = getattr(alias, "choices", [alias])
    found = [each for each in choices if isinstance(each, str)]
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    return [*found, name] if by_name else found


@lru_cache(maxsize=1_000)
def is_secret(model: type) -> bool:
    """True if a model of pydantic has a field whose value must not be stored."""
    return _has_secret(model.model_json_schema)  # type: ignore[attr-defined]


def _has_secret(schema: Callable[[], Any]) -> bool:
    try:
        left = [schema()]
    except Exception:  # some types have no schema, such as those of a program's own validators
        return False
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if part.get("format") == "password" and part.get("writeOnly"):
                return True
            left += part.values()
        elif isinstance(part, list):
            left += part
    return False
