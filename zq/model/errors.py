"""The error tree. Every error that a caller of the server can get is one of these.

Rooms have errors of their own below these, in their `errors.py`.

ZqError
├── InvalidRequest          the request is wrong; sending it again will not help
│   ├── BrokenBody          the body of the request ended early, or is not framed well
│   ├── UnknownField        a field or a parameter that there is not
│   └── InvalidFilter       a jq program that does not compile
├── NotFound
│   ├── JobNotFound
│   ├── NotInFlight         the job that is acknowledged is held by nobody
│   ├── ErrorRecordNotFound
│   └── WorkerNotFound      no worker of this name has a stream open
├── Unauthorized            the request has no key, or an unknown one
├── Forbidden               this caller may not do this
│   ├── ScopeMissing
│   ├── QueueOutOfReach
│   ├── BudgetOutOfReach    the budget is outside the prefixes of this key
│   ├── ForeignHost         the name is not this server's: see `zq.http.guard`
│   └── ForeignPage         a browser sends the request for a page of another site
├── Conflict
│   ├── KeyConflict         the unique key belongs to a job that the caller may not see
│   ├── KeyTaken            another job has the unique key of a job that is to come back
│   ├── CursorAhead         the cursor is beyond the end of the log
│   ├── StaleLease          the delivery that is acknowledged has ended
│   ├── NotCancellable      the job runs or has finished
│   ├── NotFinished         only a finished job has a retention to change
│   ├── NotDead             only a dead job can be requeued
│   ├── DeadLetterCycle     dead letters would move in a circle
│   └── FanOutChain         a target of a queue would have targets itself
├── Gone
│   ├── JobCancelled        the job was cancelled and will have no result
│   ├── JobExpired          no worker took the job in time
│   └── RecordsGone         the retention of the records has ended
├── Unprocessable           the request is well formed, but the job's state or a field forbids it
│   ├── QueueNotRegistered  only queues with settings get new jobs from this sender
│   ├── QuotaReached        the key has made as much of a kind as it may
│   └── NotCompared         a transaction has compared enough payloads: another one goes on
├── RequestTimeout          the request did not arrive in time
│   ├── HeaderTimeout
│   └── BodyTimeout
├── TooLarge                the body is larger than its limit
│   ├── PayloadTooLarge
│   ├── TooManyItems        one bulk request has too many items
│   ├── BulkTooLarge        its payloads are too large to be stored in one go
│   ├── TooManyValues       the body has too many values
│   └── TooManyCompared     its payloads take too long to compare with their schemas
├── ServiceUnavailable      the cause will pass; the same request may succeed later
│   ├── InboxFull
│   ├── WalFull             a reader keeps the write-ahead log from being emptied
│   ├── TooManyConnections
│   ├── TooManyStreams
│   ├── AnswersFull         too much memory holds answers that clients do not read
│   ├── ReadTimeout
│   ├── ReadersBusy         long reads wait for each other
│   ├── FilterAborted
│   │   └── FilterNotStarted    its process cannot start, for want of descriptors or memory
│   ├── FiltersBusy         jq filters wait for each other
│   ├── BackupRunning       a backup is under way, and there is one at a time
│   ├── BackupDisturbed     another program writes to the database
│   ├── OutOfMemory         the server got no memory for this request
│   ├── DatabaseLocked      another program holds the database's lock
│   ├── DatabaseAway        the connection to the database is lost
│   ├── DiskFailed          the disk has failed, and nothing is stored or told any more
│   └── OutcomeUnknown      the disk failed while the change was being written
├── LimitReached            a limit is reached for now; there will be room again
│   └── QueueFull           a queue has as many unfinished jobs as its settings allow
├── NotOnThisStore          this store lacks what is asked for
├── StorageFull             there is no space for new jobs; acknowledgements are accepted
└── Internal                zq itself has a fault; the log has the traceback
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
    code = "invalid_request"


class BrokenBody(InvalidRequest):
    code = "broken_body"


class InvalidFilter(InvalidRequest):
    code = "invalid_filter"


class NotFound(ZqError):
    code = "not_found"


class JobNotFound(NotFound, LookupError):
    """No job has this id, or the job has finished and was not kept."""

    code = "job_not_found"

    def __init__(self, message: str = "job not found") -> None:
        super().__init__(message)


class NotInFlight(NotFound):
    code = "not_in_flight"

    def __init__(self) -> None:
        super().__init__("job not found in in-flight set")


class ErrorRecordNotFound(NotFound):
    code = "error_record_not_found"

    def __init__(self) -> None:
        super().__init__("error record not found")


class WorkerNotFound(NotFound):
    code = "worker_not_found"

    def __init__(self) -> None:
        super().__init__("no worker with this id has a stream open: see GET /workers")


class Unauthorized(ZqError):
    code = "unauthorized"


class Forbidden(ZqError):
    code = "forbidden"


class ScopeMissing(Forbidden):
    code = "scope_missing"


class QueueOutOfReach(Forbidden):
    code = "queue_out_of_reach"

    def __init__(self, queue: str, prefixes: Iterable[str]) -> None:
        shown = ", ".join(map(repr, prefixes))
        super().__init__(
            f"this key may not use the queue {queue!r}: it is for queues that begin with {shown}"
        )


class BudgetOutOfReach(Forbidden):
    code = "budget_out_of_reach"

    def __init__(self, key: str, prefixes: Iterable[str]) -> None:
        shown = ", ".join(map(repr, prefixes))
        super().__init__(
            f"this key may not make the budget {key!r}: it makes those that begin with {shown}."
            " Leave create_with out if the budget is there"
        )


class ForeignHost(Forbidden):
    code = "foreign_host"


class ForeignPage(Forbidden):
    code = "foreign_page"


class Conflict(ZqError):
    code = "conflict"


class KeyConflict(Conflict):
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
    code = "cursor_ahead"

    def __init__(self, after: int, max_seq: int) -> None:
        super().__init__(
            f"the record {after} has never existed, the last one is {max_seq}: the cursor belongs"
            " to another log, or the database was restored to an earlier state"
        )


class NotCancellable(Conflict):
    code = "not_cancellable"

    def __init__(self, status: str) -> None:
        remedy = " without force" if status == "in_flight" else ""
        super().__init__(f"a job that is {status} cannot be cancelled{remedy}")
        self.status = status


class NotFinished(Conflict):
    code = "not_finished"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: its retention begins when it has finished")
        self.status = status


class NotDead(Conflict):
    code = "not_dead"

    def __init__(self, status: str) -> None:
        super().__init__(f"the job is {status}: only a dead job can be requeued")
        self.status = status


class DeadLetterCycle(Conflict):
    code = "dead_letter_cycle"

    def __init__(self, path: Iterable[str]) -> None:
        shown = " -> ".join(map(repr, path))
        super().__init__(f"the dead-letter queues would form a circle: {shown}")


class Gone(ZqError):
    code = "gone"


class JobCancelled(Gone):
    """The job was cancelled, and has no result."""

    code = "job_cancelled"

    def __init__(self, message: str = "the job was cancelled") -> None:
        super().__init__(message)


class RecordsGone(Gone):
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
    code = "job_expired"

    def __init__(self) -> None:
        super().__init__("the job has expired: no worker took it in time")


class Unprocessable(ZqError):
    code = "unprocessable"


class RequestTimeout(ZqError):
    code = "request_timeout"


class HeaderTimeout(RequestTimeout):
    code = "header_timeout"


class BodyTimeout(RequestTimeout):
    code = "body_timeout"


class TooLarge(ZqError):
    code = "too_large"


class PayloadTooLarge(TooLarge):
    code = "payload_too_large"


class TooManyItems(TooLarge):
    code = "too_many_items"


class ServiceUnavailable(ZqError):
    code = "unavailable"

    retry_after_s = 1
    """Advice to the client: the seconds to wait before it tries again."""


class InboxFull(ServiceUnavailable):
    code = "inbox_full"


class OutOfMemory(ServiceUnavailable):
    code = "out_of_memory"

    def __init__(self) -> None:
        super().__init__(
            "the server gets no more memory for this request, which may be done or not: try again"
            " shortly, or send less in one request"
        )


class WalFull(ServiceUnavailable):
    code = "wal_full"


class TooManyConnections(ServiceUnavailable):
    code = "too_many_connections"


class TooManyStreams(ServiceUnavailable):
    code = "too_many_streams"


class AnswersFull(ServiceUnavailable):
    code = "answers_full"


class ReadTimeout(ServiceUnavailable):
    code = "read_timeout"


class ReadersBusy(ServiceUnavailable):
    code = "readers_busy"

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"{cause}: try again later, ask less often, or narrow the filters (by id, status or"
            " queue)"
        )


class FilterAborted(ServiceUnavailable):
    code = "filter_aborted"


class FilterNotStarted(FilterAborted):
    code = "filter_not_started"


class FiltersBusy(ServiceUnavailable):
    code = "filters_busy"

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting} jq filters are waiting already: try again later, ask less often, or use"
            " only the other filters"
        )


class OutcomeUnknown(ServiceUnavailable):
    code = "outcome_unknown"


class LimitReached(ZqError):
    code = "limit_reached"

    retry_after_s = 1


class QueueFull(LimitReached):
    code = "queue_full"

    def __init__(self, queue: str, max_depth: int) -> None:
        super().__init__(
            f"the queue {queue!r} is full (max_depth {max_depth}): try again when workers have"
            " finished some of its jobs, or raise its max_depth"
        )


class StorageFull(ZqError):
    code = "storage_full"


class Internal(ZqError):
    code = "internal"

    def __init__(self) -> None:
        super().__init__("internal server error")


class NotOnThisStore(ZqError):
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
    code = "backup_running"

    def __init__(self) -> None:
        super().__init__("a backup is under way already: try again when it has ended")


class BackupDisturbed(ServiceUnavailable):
    code = "backup_disturbed"

    def __init__(self) -> None:
        super().__init__(
            "another program writes to the database, and each time a copy begins anew: try again"
            " when that program (say litestream) is stopped, or take the backup from it"
        )


class DatabaseLocked(ServiceUnavailable):
    code = "database_locked"

    def __init__(self) -> None:
        super().__init__(
            "another program holds the database's lock (say a sqlite3 shell in a transaction, or a"
            " backup tool): nothing was changed, try again when that program has released it"
        )


class DatabaseAway(ServiceUnavailable):
    code = "database_away"

    def __init__(self, cause: str) -> None:
        super().__init__(f"{cause}: nothing was changed, try again when the database is back")


class DiskFailed(ServiceUnavailable):
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

    code = "not_compared"

    def __init__(self) -> None:
        super().__init__(
            "a transaction compares no more payloads with schemas: send fewer jobs at a time"
        )


class TooManyCompared(TooLarge):
    code = "too_many_compared"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"to compare the payloads of this request with their schemas takes more than {most}"
            " steps: send fewer jobs a request, or give fewer branches to unions"
        )


class FanOutChain(Conflict):
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
