"""The rules for what a job brings that its types do not say."""

import re

from zq.model.errors import InvalidRequest
from zq.model.job import CarriedFields, SettingFields
from zq.model.names import check_name

MAX_CONTENT_TYPE = 255

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}[ \t]*(?:;[ -~\t]*)?")
"""RFC 9110, section 8.3.1. Parameters only have to be printable ASCII."""

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}"
    r"(?P<rest>-[!-~]*)?"
)
"""https://www.w3.org/TR/trace-context/#traceparent-header; later versions may append fields."""

MAX_TRACEPARENT = 255


def check_settings(said: SettingFields) -> None:
    """Raise `InvalidRequest` for settings of a new job that no type forbids."""
    if said.dead_letter is not None:
        check_name("dead_letter", said.dead_letter)
    elif said.dead_letter_after is not None:
        raise InvalidRequest("dead_letter_after requires dead_letter")


def check_carried(said: CarriedFields) -> None:
    """Raise `InvalidRequest` for what a new job carries, if no type forbids it."""
    if said.content_type is not None:
        check_content_type(said.content_type)
    if said.traceparent is not None:
        check_traceparent(said.traceparent)


def check_content_type(text: str) -> None:
    """Raise `InvalidRequest` if the text is not a media type."""
    if len(text) > MAX_CONTENT_TYPE or not _MEDIA_TYPE.fullmatch(text):
        raise InvalidRequest(
            "content_type must be a media type such as application/json, of up to"
            f" {MAX_CONTENT_TYPE} characters"
        )


def check_traceparent(text: str) -> None:
    """Raise `InvalidRequest` if the text names no parent span as W3C's Trace Context does."""
    found = _TRACEPARENT.fullmatch(text) if len(text) <= MAX_TRACEPARENT else None
    if (
        found is None
        or found["version"] == "ff"
        or (found["version"] == "00" and found["rest"])
        or not int(found["trace"], 16)
        or not int(found["parent"], 16)
    ):
        raise InvalidRequest(
            "traceparent must have the form of W3C's Trace Context, such as"
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        )
