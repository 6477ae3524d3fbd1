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


class TopicIsQueue(Conflict):
    """Records for a queue need keys of jobs: whoever appends them is to give these along."""

    code = "topic_is_queue"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic '{topic}' is a queue: its records go to workers")


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


class RouterNotFound(NotFound):
    code = "router_not_found"

    def __init__(self, router: str) -> None:
        super().__init__(f"router '{router}' not found: create it first")
        self.router = router


class RouterCycle(Conflict):
    """Copies would come back to the topic that they are made of."""

    code = "router_cycle"

    def __init__(self, cycle: list[str]) -> None:
        super().__init__(
            f"this router would close a circle, {' -> '.join(cycle)}: leave one of its routers"
            " out, or send allow_cycle"
        )
        self.cycle = cycle


class RouterFanIn(Conflict):
    """A topic gets copies from one other topic at most."""

    code = "topic_exists_incompatible"

    def __init__(self, dest: str, source: str) -> None:
        super().__init__(
            f"topic '{dest}' gets copies from '{source}' already, and from one topic only: use"
            " another dest, or delete the other router first"
        )


class WatchNotFound(NotFound):
    code = "watch_not_found"

    def __init__(self) -> None:
        super().__init__("this watch session is not known, or nobody read it in time: make another")


class TopicLimitReached(LimitReached):
    """There are as many of something as the limit of this name allows."""

    code = "topic_limit_reached"

    def __init__(self, limit: str, most: int, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        self.most = most


class TooManyTopics(TopicLimitReached):
    code = "too_many_topics"

    def __init__(self, most: int) -> None:
        super().__init__("max_topics", most, f"there are {most} topics already: delete some first")


class TooManyRouters(TopicLimitReached):
    code = "too_many_routers"

    def __init__(self, most: int) -> None:
        super().__init__(
            "max_routers", most, f"there are {most} routers already: delete some first"
        )


class TooManyCopies(TopicLimitReached):
    code = "too_many_copies"

    def __init__(self, topic: str, most: int) -> None:
        super().__init__(
            *("max_copies", most),
            f"a record of topic '{topic}' would have more than {most} copies: delete some of the"
            " routers behind it first",
        )


class TooManyWatches(TopicLimitReached):
    code = "too_many_watches"

    def __init__(self, most: int) -> None:
        super().__init__(
            *("max_watch_sessions", most),
            f"there are {most} watch sessions already: some are over soon, if nobody reads them",
        )
