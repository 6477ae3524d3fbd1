"""The part of the error tree that is about topics."""

from zq.model.errors import Conflict, InvalidRequest, LimitReached, NotFound, Unprocessable


class TopicNotFound(NotFound):
    code = "topic_not_found"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic '{topic}' not found: create it, or append to it first")
        self.topic = topic


class TopicIncompatible(Conflict):
    """The type of a topic never changes."""

    code = "topic_exists_incompatible"

    def __init__(self, topic: str, kind: str) -> None:
        super().__init__(
            f"topic '{topic}' has the type {kind}, and that cannot change: use another name, or"
            " delete it first"
        )


class TopicNotEmpty(Conflict):
    code = "topic_not_empty"

    def __init__(self, topic: str, count: int) -> None:
        super().__init__(
            f"topic '{topic}' holds {count} records: delete them first, or leave out if_empty"
        )


class NotAQueue(Conflict):
    code = "not_a_queue"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic '{topic}' is a log: read it by a cursor")


class TopicFull(Unprocessable):
    code = "topic_full"

    def __init__(self, topic: str, cause: str) -> None:
        super().__init__(
            f"topic '{topic}' cannot take this write, for {cause}: delete records, or raise its"
            " caps"
        )


class RecordTooLarge(InvalidRequest):
    code = "record_too_large"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"a record has {size} bytes of data and meta, but at most {most} are allowed: store"
            " large data elsewhere"
        )


class BatchTooLarge(InvalidRequest):
    code = "batch_too_large"

    def __init__(self, field: str, count: int, most: int) -> None:
        super().__init__(
            f"{field} holds {count}, but at most {most} are allowed: send several requests"
        )
        self.field = field
        self.count = count
        self.most = most


class TooManyTopics(LimitReached):
    code = "too_many_topics"

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} topics already: delete some first")
        self.most = most
