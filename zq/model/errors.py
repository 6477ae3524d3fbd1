"""The error tree. Every error that a caller of the server can get is one of these.

Rooms have errors of their own below these, in their `model.py` or `errors.py`. The first paragraph
of a class tells clients what its code means: the reference of the API has them all.
"""

from collections.abc import Iterable, Mapping
from typing import Self


class ZqError(Exception):
    """The base of all errors. `code` is stable and for programs, the message is for people."""

    code = "error"
    details: Mapping[str, object] = {}
    """Fields of an answer's body that tell programs more than the message."""
    index: int | None = None
    """The index of the job in a bulk that is at fault, if one is."""
    is_partial = False
    """True if a part of what was asked for is done."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def about(self, index: int, place: str = "jobs") -> Self:
        """This error, about one of several jobs: the message and `index` name it."""
        self.message = f"{place}[{index}]: {self.message}"
        self.args = (self.message,)
        self.index = index
        return self


class InvalidRequest(ZqError):
    """The request is wrong. Sending it again will not help."""

    code = "invalid_request"


class BrokenBody(InvalidRequest):
    """The body of the request ended early, or is not framed well."""

    code = "broken_body"


class InvalidFilter(InvalidRequest):
    """The jq program of `filter` does not compile."""

    code = "invalid_filter"


class NotFound(ZqError):
    """There is nothing of this name."""

    code = "not_found"


class JobNotFound(NotFound, LookupError):
    """No job has this id, or the job has finished and was not kept."""

    code = "job_not_found"

    def __init__(self, message: str = "job not found") -> None:
        super().__init__(message)


class NotInFlight(NotFound):
    """No delivery of this job is open: it was settled, returned, or never delivered."""

    code = "not_in_flight"

    def __init__(self) -> None:
        super().__init__("job not found in in-flight set")


class ErrorRecordNotFound(NotFound):
    """The job has no failure of this number."""

    code = "error_record_not_found"

    def __init__(self) -> None:
        super().__init__("error record not found")


class WorkerNotFound(NotFound):
    """No worker of this name has a stream open."""

    code = "worker_not_found"

    def __init__(self) -> None:
        super().__init__("no worker with this id has a stream open: see GET /workers")


class Unauthorized(ZqError):
    """The request has no key, or an unknown one."""

    code = "unauthorized"


class Forbidden(ZqError):
    """This caller may not do this."""

    code = "forbidden"


class ScopeMissing(Forbidden):
    """The key does not have the scope that the request needs."""

    code = "scope_missing"


class QueueOutOfReach(Forbidden):
    """The queue is outside the prefixes of the key."""

    code = "queue_out_of_reach"

    def __init__(self, queue: str, prefixes: Iterable[str]) -> None:
        shown = ", ".join(map(repr, prefixes))
        super().__init__(
            f"this key may not use the queue {queue!r}: it is for queues that begin with {shown}"
        )


class BudgetOutOfReach(Forbidden):
    """The budget is outside the prefixes of the key."""

    code = "budget_out_of_reach"

    def __init__(self, key: str, prefixes: Iterable[str]) -> None:
        shown = ", ".join(map(repr, prefixes))
        super().__init__(
            f"this key may not make the budget {key!r}: it makes those that begin with {shown}."
            " Leave create_with out if the budget is there"
        )


class ForeignHost(Forbidden):
    """The request names a host that is not this server."""

    code = "foreign_host"


class ForeignPage(Forbidden):
    """A browser sends the request for a page of another site."""

    code = "foreign_page"


class Conflict(ZqError):
    """The state of what is to be changed forbids it."""

    code = "conflict"


class KeyConflict(Conflict):
    """The unique key belongs to a job that the caller may not see."""

    code = "key_conflict"

    def __init__(self, what: str = "has the same unique_key") -> None:
        super().__init__(f"a job that this key may not see {what}")


class StaleLease(Conflict):
    """The delivery of the job has ended. What its worker reports no longer counts."""

    code = "stale_lease"

    def __init__(
        self, message: str = "this delivery of the job has ended: drop its result"
    ) -> None:
        super().__init__(message)


class CursorAhead(Conflict):
    """The cursor is beyond the end of the log."""

    code = "cursor_ahead"

    def __init__(self, after: int, max_seq: int) -> None:
        super().__init__(
            f"the record {after} has never existed, the last one is {max_seq}: the cursor belongs"
            " to another log, or the database was restored to an earlier state"
        )


class NotCancellable(Conflict):
    """The job runs, or has finished."""

    code = "not_cancellable"

    def __init__(self, status: str) -> None:
        remedy = " without force" if status == "in_flight" else ""
        super().__init__(f"a job that is {status} cannot be cancelled{remedy}")
        self.status = status


class NotFinished(Conflict):
    """Only a finished job has a retention to change."""

    code = "not_finished"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: its retention begins when it has finished")
        self.status = status


class NotDead(Conflict):
    """Only a dead job can be requeued."""

    code = "not_dead"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: only a dead job can be requeued")
        self.status = status


class DeadLetterCycle(Conflict):
    """Dead letters would move in a circle."""

    code = "dead_letter_cycle"

    def __init__(self, path: Iterable[str]) -> None:
        shown = " -> ".join(map(repr, path))
        super().__init__(f"the dead-letter queues would form a circle: {shown}")


class Gone(ZqError):
    """It was there, and is gone for good."""

    code = "gone"


class JobCancelled(Gone):
    """The job was cancelled, and has no result."""

    code = "job_cancelled"

    def __init__(self, message: str = "the job was cancelled") -> None:
        super().__init__(message)


class RecordsGone(Gone):
    """The retention of the records has ended."""

    code = "records_gone"

    min_seq = 1
    """The oldest record that is kept after those that are gone."""

    def __init__(self, wanted: int, min_seq: int) -> None:
        super().__init__(
            f"the record {wanted} is damaged, or its retention has ended; the next one is"
            f" {min_seq}: continue with after={min_seq - 1}, and count the others as lost"
        )
        self.min_seq = min_seq


class JobExpired(Gone):
    """No worker took the job in time, so it has no result."""

    code = "job_expired"

    def __init__(self) -> None:
        super().__init__("the job has expired: no worker took it in time")


class Unprocessable(ZqError):
    """The request is well formed, and a field of it, or the state of a job, forbids it."""

    code = "unprocessable"


class RequestTimeout(ZqError):
    """The request did not arrive in time."""

    code = "request_timeout"


class HeaderTimeout(RequestTimeout):
    """The head of the request did not arrive in time."""

    code = "header_timeout"


class BodyTimeout(RequestTimeout):
    """The body of the request did not arrive in time."""

    code = "body_timeout"


class TooLarge(ZqError):
    """The body is larger than its limit."""

    code = "too_large"


class PayloadTooLarge(TooLarge):
    """The payload of a job is larger than its limit."""

    code = "payload_too_large"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"the payload has {size} bytes, but at most {most} are allowed: store large data"
            " elsewhere and send its address, or raise --max-payload"
        )


class TooManyItems(TooLarge):
    """One bulk request has too many items."""

    code = "too_many_items"


class ServiceUnavailable(ZqError):
    """The cause will pass. The same request may succeed later."""

    code = "unavailable"

    retry_after_s = 1
    """Advice to the client: the seconds to wait before it tries again."""


class InboxFull(ServiceUnavailable):
    """As many changes as the server takes wait for the disk."""

    code = "inbox_full"


class OutOfMemory(ServiceUnavailable):
    """The server got no memory for the request."""

    code = "out_of_memory"

    def __init__(self) -> None:
        super().__init__(
            "the server gets no more memory for this request, which may be done or not: try again"
            " shortly, or send less in one request"
        )


class WalFull(ServiceUnavailable):
    """The write-ahead log is at its limit: a reader keeps it from being emptied."""

    code = "wal_full"


class TooManyConnections(ServiceUnavailable):
    """There are as many connections as the server, or an address, may have."""

    code = "too_many_connections"


class TooManyStreams(ServiceUnavailable):
    """There are as many streams as the server, or an address, may have."""

    code = "too_many_streams"


class AnswersFull(ServiceUnavailable):
    """Too much memory holds answers that clients do not read."""

    code = "answers_full"


class ReadTimeout(ServiceUnavailable):
    """The read took longer than it may."""

    code = "read_timeout"


class ReadersBusy(ServiceUnavailable):
    """Long reads wait for each other, and as many as may wait do."""

    code = "readers_busy"

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"{cause}: try again later, ask less often, or narrow the filters (by id, status or"
            " queue)"
        )


class FilterAborted(ServiceUnavailable):
    """The filter took too long, or its process has ended."""

    code = "filter_aborted"


class FilterNotStarted(FilterAborted):
    """The process for filters cannot be started."""

    code = "filter_not_started"


class FiltersBusy(ServiceUnavailable):
    """Filters wait for each other, and as many as may wait do."""

    code = "filters_busy"

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting} jq filters are waiting already: try again later, ask less often, or use"
            " only the other filters"
        )


class OutcomeUnknown(ServiceUnavailable):
    """The disk failed while the change was being written."""

    code = "outcome_unknown"


class LimitReached(ZqError):
    """A limit is reached for now. There will be room again."""

    code = "limit_reached"

    retry_after_s = 1


class QueueFull(LimitReached):
    """The queue has as many unfinished jobs as its settings allow."""

    code = "queue_full"

    def __init__(self, queue: str, max_depth: int) -> None:
        super().__init__(
            f"the queue {queue!r} is full (max_depth {max_depth}): try again when workers have"
            " finished some of its jobs, or raise its max_depth"
        )


class StorageFull(ZqError):
    """There is no space for new jobs. Acknowledgements are accepted."""

    code = "storage_full"


class Internal(ZqError):
    """zq itself has a fault. The log has the traceback."""

    code = "internal"

    def __init__(self) -> None:
        super().__init__("internal server error")


class NotOnThisStore(ZqError):
    """The store of this server lacks what is asked for."""

    code = "not_on_this_store"

    def __init__(self, what: str, instead: str = "") -> None:
        """`what` is missing. `instead` says what to use; without it, another store has it."""
        instead = instead or "a server over a data directory (--root-dir) has it"
        super().__init__(f"the store on PostgreSQL has no {what}: {instead}")


def unexpected(error: Exception) -> ZqError:
    """The error that a caller gets in place of one that zq did not expect."""
    if isinstance(error, NotOnThisStore):
        return error
    return OutOfMemory() if isinstance(error, MemoryError) else Internal()


class BackupRunning(ServiceUnavailable):
    """A backup is under way, and there is one at a time."""

    code = "backup_running"

    def __init__(self) -> None:
        super().__init__("a backup is under way already: try again when it has ended")


class BackupDisturbed(ServiceUnavailable):
    """Another program writes to the database."""

    code = "backup_disturbed"

    def __init__(self) -> None:
        super().__init__(
            "another program writes to the database, and each time a copy begins anew: try again"
            " when that program (say litestream) is stopped, or take the backup from it"
        )


class DatabaseLocked(ServiceUnavailable):
    """Another program holds the database's lock."""

    code = "database_locked"

    def __init__(self) -> None:
        super().__init__(
            "another program holds the database's lock (say a sqlite3 shell in a transaction, or a"
            " backup tool): nothing was changed, try again when that program has released it"
        )


class DatabaseAway(ServiceUnavailable):
    """The connection to the database is lost."""

    code = "database_away"

    def __init__(self, cause: str) -> None:
        super().__init__(f"{cause}: nothing was changed, try again when the database is back")


class DiskFailed(ServiceUnavailable):
    """The disk has failed. Nothing is stored or told any more."""

    code = "disk_failed"

    def __init__(self) -> None:
        super().__init__(
            "the disk has failed: nothing is stored or told before the next start, which finds"
            " everything that was acknowledged"
        )


class UnknownField(InvalidRequest):
    """A body has a field, or a query a parameter, that there is not."""

    code = "unknown_field"


class BulkTooLarge(TooLarge):
    """The payloads of one bulk request would hold all others up while they are stored."""

    code = "bulk_too_large"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"the payloads of this request have {size} bytes, but at most {most} are stored in one"
            " go: send several requests, or raise --max-bulk-bytes"
        )


class TooManyValues(TooLarge):
    """A body holds more values than a request may, although it may have so many bytes."""

    code = "too_many_values"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the body has more than {most} values, of which each text, number, array and object is"
            " one: send fewer jobs a request, store large data elsewhere, or raise --max-values"
        )


class QueueNotRegistered(Unprocessable):
    """Only queues with settings get new jobs from this sender."""

    code = "queue_not_registered"

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} is not registered: set something for it first")


class QuotaReached(Unprocessable):
    """A caller with prefixes has made as much of a kind as it may. Waiting does not help."""

    code = "quota_reached"

    def __init__(self, what: str, have: int, most: int) -> None:
        super().__init__(
            f"there are {have} {what} within the prefixes of this key, and at most {most} may be"
            " made with it: delete some, or use a key without prefixes"
        )


class NotCompared(Unprocessable):
    """A job is left for another transaction, since this one has compared enough payloads."""

    def __init__(self) -> None:
        super().__init__(
            "a transaction compares no more payloads with schemas: send fewer jobs at a time"
        )


class TooManyCompared(TooLarge):
    """The payloads of a bulk take too long to compare with their schemas."""

    code = "too_many_compared"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"to compare the payloads of this request with their schemas takes more than {most}"
            " steps: send fewer jobs a request, or give fewer branches to unions"
        )


class FanOutChain(Conflict):
    """A target of a queue would have targets itself."""

    code = "fan_out_chain"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(
            f"{queue!r} cannot have the target {target!r}: a target must not have targets of its"
            " own. Name the last queues of the chain instead"
        )


class KeyTaken(Conflict):
    """A job cannot come back, or move, since another one has its unique key by now."""

    code = "key_taken"

    def __init__(self, unique_key: str) -> None:
        super().__init__(
            f"another job has the unique key {unique_key!r} by now: cancel or delete that one, or"
            " try again when it is done"
        )
