"""The part of the error tree that is about users."""

from zq.model.errors import Conflict, Forbidden, InvalidRequest, LimitReached, NotFound


class UserNotFound(NotFound):
    code = "user_not_found"

    def __init__(self) -> None:
        super().__init__("user not found")


class GrantNotFound(NotFound):
    code = "grant_not_found"

    def __init__(self) -> None:
        super().__init__("grant not found")


class UserExists(Conflict):
    code = "user_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a user {name!r} already: choose another name")


class GrantExists(Conflict):
    code = "grant_exists"

    def __init__(self, group: str) -> None:
        super().__init__(f"the user may consume for the group {group!r} already")


class OwnUser(InvalidRequest):
    code = "own_user"

    def __init__(self) -> None:
        super().__init__("you cannot delete yourself: have another administrator do it")


class LastAdmin(Conflict):
    code = "last_admin"

    def __init__(self) -> None:
        super().__init__(
            "this is the last administrator, and without one nobody could change users: make"
            " another user an administrator first"
        )


class AdminNeeded(Forbidden):
    code = "admin_needed"

    def __init__(self) -> None:
        super().__init__("admin access required")


class GrantMissing(Forbidden):
    code = "grant_missing"

    def __init__(self) -> None:
        super().__init__("insufficient permissions")


class TooManyLogins(LimitReached):
    code = "too_many_logins"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"too many failed logins as this user or from this address: try again in"
            f" {retry_after_s} s"
        )
        self.retry_after_s = retry_after_s
