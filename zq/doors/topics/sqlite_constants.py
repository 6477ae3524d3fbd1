"""What words in the queries of topics stand for."""

from zq.doors.topics.model import MAX_SEQ, MAX_TOPIC_ID, SEQ_BITS

TOPIC_ROW = (
    "json_array(id, name, json(config), head_seq, count, bytes, cap_floor, ttl_floor, last_at,"
    " trim_at, ifnull((SELECT key FROM topic_records"
    f" WHERE key > topics.id << {SEQ_BITS} AND key <= topics.id << {SEQ_BITS} | {MAX_SEQ}"
    f" ORDER BY key LIMIT 1) & {MAX_SEQ}, head_seq + 1), dead_lettered)"
)
"""The columns of a topic in the order of the fields of `TopicState`."""

CONSTANTS = {
    "topic_row": TOPIC_ROW,
    "seq_bits": str(SEQ_BITS),
    "max_seq": str(MAX_SEQ),
    "max_topic_id": str(MAX_TOPIC_ID),
}
