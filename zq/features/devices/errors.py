"""The errors of the error tree about devices."""

from zq.model.errors import Conflict, Forbidden, NotFound, Unprocessable


class DeviceNotFound(NotFound):
    code = "device_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"device {name!r} is not known: it has not reported, or was deleted")


class DeviceTaken(Conflict):
    """Another device of this name is alive. Its times `since` and `seen_at` are in milliseconds."""

    code = "device_taken"

    def __init__(self, name: str, since: int, seen_at: int) -> None:
        super().__init__(
            f"another device called {name!r} is alive, or has taken over its name: give one of them"
            f" another --device-name, or, if the other one is gone, DELETE /devices/{name}"
        )
        self.details = {"since": since, "seen_at": seen_at}


class DeviceOutOfReach(Forbidden):
    """The key is not one of this device."""

    code = "device_out_of_reach"

    def __init__(self, name: str) -> None:
        super().__init__(f"this key does not speak for device {name!r}: give it producers={name}/*")


class TooManyDevices(Unprocessable):
    """There are as many devices as the server remembers. Waiting does not help."""

    code = "too_many_devices"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the server remembers {most} devices already: delete those that are gone with"
            " DELETE /devices/{name}"
        )


class NobodyThere(Unprocessable):
    """A job is for a device that the server does not know."""

    code = "device_unknown"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"to: no device called {name!r} has reported here: GET /devices lists those that have"
        )


class HistoryNotKept(Unprocessable):
    """The server keeps no history, so it takes none of devices."""

    code = "no_history"

    def __init__(self) -> None:
        super().__init__("this server keeps no history: start it with --history 7d")


class DeviceKeyNeeded(Forbidden):
    """Only a key that is bound to a device gets the jobs that are for it."""

    code = "device_key_needed"

    def __init__(self, name: str) -> None:
        super().__init__(f"only a key with producers={name}/* gets the jobs for device {name!r}")
