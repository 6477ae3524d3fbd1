"""zq: a persistent job queue for one host. A name is imported when a program first uses it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zq.client import errors as errors
    from zq.client.amounts import Seconds as Seconds
    from zq.client.app import App as App
    from zq.client.backend import Backend as Backend
    from zq.client.errors import BackendError as BackendError
    from zq.client.errors import Deadlock as Deadlock
    from zq.client.errors import DiscoveryError as DiscoveryError
    from zq.client.errors import EmptyPayload as EmptyPayload
    from zq.client.errors import InvalidOption as InvalidOption
    from zq.client.errors import InvalidPayload as InvalidPayload
    from zq.client.errors import JobCancelled as JobCancelled
    from zq.client.errors import JobFailed as JobFailed
    from zq.client.errors import JobNotFound as JobNotFound
    from zq.client.errors import JobState as JobState
    from zq.client.errors import MissingGroup as MissingGroup
    from zq.client.errors import NotFifo as NotFifo
    from zq.client.errors import RetriesExhausted as RetriesExhausted
    from zq.client.errors import StaleLease as StaleLease
    from zq.client.errors import Unavailable as Unavailable
    from zq.client.errors import UnknownQueue as UnknownQueue
    from zq.client.errors import WaitTimeout as WaitTimeout
    from zq.client.errors import ZqError as ZqError
    from zq.client.events import Event as Event
    from zq.client.files.discovery import QueueConfig as QueueConfig
    from zq.client.files.queue import FileQueue as FileQueue
    from zq.client.files.registry import queues as queues
    from zq.client.flows import JobFlow as JobFlow
    from zq.client.flows import chain as chain
    from zq.client.flows import chain_sync as chain_sync
    from zq.client.flows import chord as chord
    from zq.client.flows import chord_sync as chord_sync
    from zq.client.flows import step as step
    from zq.client.formats import JSON as JSON
    from zq.client.formats import MSGPACK as MSGPACK
    from zq.client.formats import Codec as Codec
    from zq.client.http.address import Tls as Tls
    from zq.client.job import CancelStatus as CancelStatus
    from zq.client.job import Job as Job
    from zq.client.job_error import JobError as JobError
    from zq.client.options import Backoff as Backoff
    from zq.client.options import CallOptions as CallOptions
    from zq.client.options import Options as Options
    from zq.client.outcome import DrainReport as DrainReport
    from zq.client.outcome import Outcome as Outcome
    from zq.client.payloads import content_key as content_key
    from zq.client.payloads import new_id as new_id
    from zq.client.queue import Enqueued as Enqueued
    from zq.client.queue import JobStatus as JobStatus
    from zq.client.queue import Queue as Queue
    from zq.client.queue import SyncQueue as SyncQueue
    from zq.client.running import Discard as Discard
    from zq.client.running import GiveBack as GiveBack
    from zq.client.running import Kill as Kill
    from zq.client.running import Middleware as Middleware
    from zq.client.running import Retry as Retry
    from zq.client.running import Running as Running
    from zq.client.running import current_job as current_job
    from zq.client.task import Call as Call
    from zq.client.task import Task as Task
    from zq.client.values import MISSING as MISSING
    from zq.client.values import JobEvent as JobEvent
    from zq.client.values import Missing as Missing
    from zq.client.values import State as State
    from zq.client.worker.settling import JobContext as JobContext
    from zq.client.worker.worker import Worker as Worker
    from zq.features.batches.client import Batch as Batch
    from zq.features.budgets.client_limits import Budget as Budget
    from zq.features.budgets.client_limits import Limit as Limit

__version__ = "0.1.0"

_HOMES = {
    "zq.client.amounts": ("Seconds",),
    "zq.client.app": ("App",),
    "zq.client.backend": ("Backend",),
    "zq.client.errors": (
        *("BackendError", "Deadlock", "DiscoveryError", "EmptyPayload", "InvalidOption"),
        "InvalidPayload",
        *("JobCancelled", "JobFailed", "JobNotFound", "JobState", "MissingGroup", "NotFifo"),
        *("RetriesExhausted", "StaleLease", "Unavailable", "UnknownQueue", "WaitTimeout"),
        "ZqError",
    ),
    "zq.client.events": ("Event",),
    "zq.client.files.discovery": ("QueueConfig",),
    "zq.client.files.queue": ("FileQueue",),
    "zq.client.files.registry": ("queues",),
    "zq.client.flows": ("JobFlow", "chain", "chain_sync", "chord", "chord_sync", "step"),
    "zq.client.formats": ("JSON", "MSGPACK", "Codec"),
    "zq.client.job": ("CancelStatus", "Job"),
    "zq.client.options": ("Backoff", "CallOptions", "Options"),
    "zq.client.outcome": ("DrainReport", "Outcome"),
    "zq.client.payloads": ("content_key", "new_id"),
    "zq.client.queue": ("Enqueued", "JobStatus", "Queue", "SyncQueue"),
    "zq.client.running": (
        *("Discard", "GiveBack", "Kill", "Middleware", "Retry", "Running", "current_job"),
    ),
    "zq.client.task": ("Call", "Task"),
    "zq.client.http.address": ("Tls",),
    "zq.client.job_error": ("JobError",),
    "zq.client.values": ("MISSING", "JobEvent", "Missing", "State"),
    "zq.client.worker.settling": ("JobContext",),
    "zq.client.worker.worker": ("Worker",),
    "zq.features.batches.client": ("Batch",),
    "zq.features.budgets.client_limits": ("Budget", "Limit"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, "errors"])  # for `help(zq)`, and for `from zq import *`


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("zq.client.errors")
    if name not in _HOME:
        said = "" if name.startswith("__") else _remedy(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{said}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def _remedy(name: str) -> str:
    """The hint for a newcomer who writes a name of another library in place of this one."""
    replaced = import_module("zq.client.replaced")
    said: str = replaced.remedy(replaced.NAMES, name)
    return said


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
