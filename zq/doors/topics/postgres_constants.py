"""What words in the statements of topics stand for."""

from zq.doors.topics.model import MAX_SEQ, SEQ_BITS

CONSTANTS = {"seq_bits": str(SEQ_BITS), "max_seq": str(MAX_SEQ)}
