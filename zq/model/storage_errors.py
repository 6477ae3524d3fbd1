"""The errors of the error tree in `zq.model.errors` that concern the stored data as a whole."""

from zq.model.errors import ServiceUnavailable


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


class DiskFailed(ServiceUnavailable):
    code = "disk_failed"

    def __init__(self) -> None:
        super().__init__(
            "the disk has failed: nothing is stored or told before the next start, which finds"
            " everything that was acknowledged"
        )
