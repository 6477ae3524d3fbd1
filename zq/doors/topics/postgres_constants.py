"""What words in the statements of topics stand for."""

from zq.doors.topics.model import MAX_SEQ, MAX_TOPIC_ID, SEQ_BITS

_COLUMNS = (
    "id, name, config, head_seq, count, bytes, cap_floor, ttl_floor, last_at, trim_at,"
    " coalesce((SELECT key FROM topic_records"
    f" WHERE key > topics.id << {SEQ_BITS} AND key <= topics.id << {SEQ_BITS} | {MAX_SEQ}"
    f" ORDER BY key LIMIT 1) & {MAX_SEQ}, head_seq + 1), dead_lettered"
)

CONSTANTS = {
    "topic_columns": _COLUMNS,
    "topic_row": f"json_build_array({_COLUMNS})::text",
    "seq_bits": str(SEQ_BITS),
    "max_seq": str(MAX_SEQ),
    "max_topic_id": str(MAX_TOPIC_ID),
}
"""The columns of a topic are in the order of the fields of `TopicState`."""
