"""The bodies of requests about settings of queues, and of redrives."""

from typing import Annotated

import msgspec
from msgspec import Meta

from zq.model.job import MAX_TIME
from zq.model.settings import QueueSettings, SettingsPatch, checked
from zq.wire.codecs import Codec, decode


class _Redrive(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_TIME)] | None = None


_settings = msgspec.json.Decoder(QueueSettings)
_patch = msgspec.json.Decoder(SettingsPatch)
_redrive = msgspec.json.Decoder(_Redrive)


def decode_settings(body: bytes, codec: Codec) -> QueueSettings:
    """The body that replaces a queue's settings: what is not in it, or null, is unset."""
    return checked(decode(body, codec, _settings))


def decode_settings_patch(body: bytes, codec: Codec) -> SettingsPatch:
    """The body that changes some of a queue's settings: null clears one."""
    return decode(body, codec, _patch)


def decode_limit(body: bytes, codec: Codec) -> int | None:
    """The body of a redrive, how many jobs at most; there need not be one."""
    return decode(body, codec, _redrive).limit if body else None


RedriveBody = _Redrive
"""Its shape by the name under which the API is described."""
