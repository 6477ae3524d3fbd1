"""Records of topics as bodies, and configs as the documents that clients read."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.doors.topics.model import (
    MOST_META_KEYS,
    NewRecord,
    TopicConfig,
    check_batch_size,
    new_record,
)
from zq.model.errors import InvalidRequest
from zq.model.payload import MAX_DEPTH, nests_too_deeply


class RecordBody(msgspec.Struct, gc=False):
    """A record to be appended. `data` is any JSON."""

    data: Raw | UnsetType = UNSET
    node: str | None = None
    tag: str | None = None
    meta: Raw | UnsetType = UNSET


class ConfigDocument(TopicConfig, frozen=True, kw_only=True):
    """The configuration of a topic, as a document."""

    durable: bool


_object = msgspec.json.Decoder(dict[str, Raw])


def new_records(bodies: Sequence[RecordBody], node: str | None) -> list[NewRecord]:
    """Checked records; `node` is that of those that name none. Raises `InvalidRequest`."""
    check_batch_size(len(bodies))
    records = []
    for index, body in enumerate(bodies):
        try:
            records.append(_new_record(body, node))
        except InvalidRequest as error:
            error.message = f"records[{index}]: {error.message}"
            raise
    return records


def config_document(config: TopicConfig) -> ConfigDocument:
    """A config for clients."""
    fields: dict[str, Any] = msgspec.structs.asdict(config)
    return ConfigDocument(**fields, durable=config.durability == "fsync")


def _new_record(body: RecordBody, node: str | None) -> NewRecord:
    if body.data is UNSET:
        raise InvalidRequest("data is missing: send any JSON, null too")
    data = bytes(body.data).decode()
    if nests_too_deeply(data):
        raise InvalidRequest(f"data may nest up to {MAX_DEPTH} deep")
    meta = None
    if body.meta is not UNSET and (text := bytes(body.meta)) != b"null":
        meta = _meta(text)
    return new_record(data, node if body.node is None else body.node, body.tag, meta)


def _meta(text: bytes) -> str:
    try:
        fields = _object.decode(text)
    except msgspec.ValidationError:
        raise InvalidRequest("meta must be an object") from None
    if len(fields) > MOST_META_KEYS:
        raise InvalidRequest(f"meta must not have more than {MOST_META_KEYS} fields")
    meta = text.decode()
    if nests_too_deeply(meta):
        raise InvalidRequest(f"meta may nest up to {MAX_DEPTH} deep")
    return meta
