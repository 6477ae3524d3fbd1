"""The bodies of requests about settings of queues and about requeuing."""

from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zq.model.job import MAX_TIME
from zq.model.patching import StrictBackoff, StrictRetention, StrictRetentionPatch
from zq.model.settings import QueueSettings, SettingsPatch, checked
from zq.wire.codecs import BodyCodec, decode

T = TypeVar("T")


class _Requeue(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_TIME)] | None = None


class _Settings(QueueSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of one queue. Absent and null leave a setting open."""

    backoff: StrictBackoff | None = None
    retention: StrictRetention | None = None


class _SettingsPatch(SettingsPatch, frozen=True, forbid_unknown_fields=True):
    """A change of settings. Absent keeps, null clears; `retention` changes field by field."""

    backoff: StrictBackoff | None | UnsetType = UNSET
    retention: StrictRetentionPatch | None | UnsetType = UNSET


_settings = msgspec.json.Decoder(_Settings)
_patch = msgspec.json.Decoder(_SettingsPatch)
_requeue = msgspec.json.Decoder(_Requeue)


def decode_settings(body: bytes, codec: BodyCodec) -> QueueSettings:
    """The body that replaces a queue's settings. A setting that is absent or null is unset."""
    return checked(_plain(decode(body, codec, _settings), QueueSettings))


def decode_settings_patch(body: bytes, codec: BodyCodec) -> SettingsPatch:
    """The body that changes some of a queue's settings. Null clears one."""
    return _plain(decode(body, codec, _patch), SettingsPatch)


def decode_limit(body: bytes, codec: BodyCodec) -> int | None:
    """The body of a request to requeue: the most jobs. It may be missing."""
    return decode(body, codec, _requeue).limit if body else None


def _plain(sent: object, kind: type[T]) -> T:
    """The fields as they were sent, without those that only made the shape strict."""
    return msgspec.convert(msgspec.to_builtins(sent), kind)


# The names of these shapes in the description of the API.
RequeueBody, SettingsBody, SettingsPatchBody = _Requeue, _Settings, _SettingsPatch
