"""What replaces the options and methods that tasks of other libraries have.

Newcomers write them first. The error that refuses one of them says what zq has instead.
"""

from collections.abc import Mapping

_EXECUTIONS = "give max_attempts, which counts the first execution too"
_LATE = "a job is always acknowledged after it ran, and goes to another worker if its own dies"
_CURRENT = "a task finds its job by zq.current_job()"
_QUEUE = "@app.task(queue=…) says it once for the task"
_FLOWS = "zq.chain(zq.step(…), …) or zq.chord([…], zq.step(…))"

OPTIONS = {
    **dict.fromkeys(("retries", "max_retries", "attempts", "retry_kwargs"), _EXECUTIONS),
    **dict.fromkeys(("retry_delay", "default_retry_delay"), "give backoff"),
    **dict.fromkeys(("retry_backoff", "retry_jitter", "retry"), "give max_attempts and backoff"),
    "retry_backoff_max": "raise zq.Retry(…, delay=…) for a wait of your own",
    **dict.fromkeys(("time_limit", "job_timeout"), "give timeout"),
    "soft_time_limit": "give timeout: the handler may clean up for the worker's --cleanup-timeout",
    "autoretry_for": "every exception is tried again, unless on_exception says otherwise",
    **dict.fromkeys(("dont_autoretry_for", "throws"), "give on_exception={…: None}"),
    **dict.fromkeys(("acks_late", "reject_on_worker_lost"), _LATE),
    "rate_limit": "the queue's setting rate, or a budget, holds over all workers",
    **dict.fromkeys(("bind", "context", "pass_context", "takes_context"), _CURRENT),
    "countdown": "give delay",
    **dict.fromkeys(("eta", "schedule_at", "run_after"), "give run_at"),
    "schedule_in": "give delay",
    "lock": "give group",
    "queueing_lock": "give key",
    **dict.fromkeys(("expires", "ttl"), "the queue's setting ttl_ms bounds how long its jobs wait"),
    "result_expires": "give result_ttl",
    "ignore_result": "give result_ttl=None",
    "serializer": "zq.App(codec=…) has it",
    "job_id": "give key",
    "depends_on": f"call {_FLOWS}",
    **dict.fromkeys(("link", "chord"), f"call {_FLOWS}"),
    **dict.fromkeys(("on_success", "on_failure", "link_error"), "@app.on(…) hears of it"),
    "at_front": "give priority, lower is sooner",
    **dict.fromkeys(("queue", "queue_name", "routing_key"), _QUEUE),
}

METHODS = {
    **dict.fromkeys(("delay", "send", "defer"), "enqueue_sync(…), or await enqueue(…)"),
    **dict.fromkeys(("kiq", "defer_async", "aenqueue"), "await enqueue(…)"),
    **dict.fromkeys(("apply_async", "send_with_options"), "options(…).enqueue_sync(…)"),
    **dict.fromkeys(("configure", "kicker", "using"), "options(…)"),
    **dict.fromkeys(("batch_defer", "batch_defer_async"), "enqueue_many(task.args(…) for …)"),
    **dict.fromkeys(("delay_on_commit", "apply_async_on_commit"), "zq.outbox.enqueue(…)"),
    "schedule": "options(delay=…).enqueue_sync(…)",
    **dict.fromkeys(("call_local", "apply"), "the task itself, which runs its function at once"),
    **dict.fromkeys(("s", "si", "signature", "subtask", "then"), _FLOWS),
    **dict.fromkeys(("map", "starmap", "chunks"), "enqueue_many(task.args(…) for …)"),
    "request": "zq.current_job()",
}

JOB_METHODS = {
    **dict.fromkeys(
        ("get", "wait", "return_value", "latest_result", "wait_result", "get_result"),
        "call result_sync(…), or await result(…)",
    ),
    **dict.fromkeys(
        ("status", "get_status", "ready", "successful", "is_finished", "is_failed"),
        "call result_sync(timeout=0), which raises zq.WaitTimeout or zq.JobFailed, or zq status ID",
    ),
    **dict.fromkeys(("revoke", "delete", "abort"), "call cancel_sync(…), or await cancel(…)"),
}

_PERIODIC = "@app.periodic(…)"
_WORKER = "zq worker MODULE:APP, or await zq.Worker(app).run()"
_APP = "give it to zq.App(…), to @app.task(…) or to zq serve"
_IMPORTS = "import the modules with the tasks in that of the app"
_TASK = "enqueue_sync(…) of a task, or zq push QUEUE"

APP_METHODS = {
    **dict.fromkeys(("send_task", "enqueue", "enqueue_call", "defer"), f"call {_TASK}"),
    **dict.fromkeys(("conf", "config_from_object", "config_from_envvar"), _APP),
    **dict.fromkeys(("autodiscover_tasks", "add_tasks_from", "import_paths"), _IMPORTS),
    **dict.fromkeys(("periodic_task", "add_periodic_task", "crontab"), f"write {_PERIODIC}"),
    **dict.fromkeys(("on_after_configure", "on_after_finalize"), f"write {_PERIODIC}"),
    **dict.fromkeys(("actor", "shared_task", "register_task"), "write @app.task"),
    **dict.fromkeys(("run_worker", "run_worker_async", "worker_main"), f"run {_WORKER}"),
    **dict.fromkeys(("start", "create_consumer"), f"run {_WORKER}"),
    **dict.fromkeys(("AsyncResult", "result", "fetch_job"), "call job(id)"),
    **dict.fromkeys(("open", "open_async"), "it connects when something is enqueued"),
    "configure_task": "call options(…) of a task",
    "control": "run zq top, zq queues, zq workers and zq cancel",
}

NAMES = {
    **dict.fromkeys(
        ("task", "shared_task", "actor", "job"), "write @app.task, with app = zq.App()"
    ),
    **dict.fromkeys(
        ("Celery", "Huey", "SqliteHuey", "RedisHuey", "PsycopgConnector"), "call zq.App()"
    ),
    **dict.fromkeys(("crontab", "cron", "periodic_task", "PeriodicTask"), f"write {_PERIODIC}"),
    **dict.fromkeys(("signature", "subtask"), f"call {_FLOWS}"),
    "group": "call enqueue_many(task.args(…) for …) of a task, or zq.chord([…], zq.step(…))",
    "AsyncResult": "call app.job(id)",
}


def remedy(names: Mapping[str, str], name: str) -> str:
    """The end of an error message about a missing name: its replacement in zq."""
    return f": {names[name]}" if name in names else ""
