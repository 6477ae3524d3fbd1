"""What replaces the options and methods that tasks of other libraries have.

Newcomers write them first. The error that refuses one of them says what zq has instead.
"""

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
