"""The cron errors of the error tree in `zq.model.errors`."""

from zq.model.errors import Conflict, Forbidden, NotFound, Unprocessable


class CronGroupNotFound(NotFound):
    code = "cron_group_not_found"

    def __init__(self, group: str) -> None:
        super().__init__(f"cron group '{group}' not found")


class CronEntryNotFound(NotFound):
    code = "cron_entry_not_found"

    def __init__(self, group: str, entry: str) -> None:
        super().__init__(f"cron entry '{entry}' not found in group '{group}'")


class CronOutOfReach(Forbidden):
    code = "cron_out_of_reach"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is also for queues that this key may not use")


class CronEntryExists(Conflict):
    code = "cron_entry_exists"

    def __init__(self, group: str, entry: str) -> None:
        super().__init__(f"cron entry '{entry}' already exists in group '{group}'")


class InvalidSchedule(Unprocessable):
    code = "invalid_schedule"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"invalid cron schedule: {text!r}: {reason}")
