"""`/users`, which is for administrators, and `/auth`: logging in, and another token."""

from typing import NamedTuple

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, UnsetType

from zq.doors.queue_ti.http.access import Access, Tokens, permit_of
from zq.doors.queue_ti.http.bodies import MessageEndpoints
from zq.doors.queue_ti.http.documents import answer, rfc3339
from zq.doors.queue_ti.model import ANY, Action, Grant, User
from zq.doors.queue_ti.service import Users
from zq.http.door import PATH, Route
from zq.http.guard import is_bearer
from zq.http.transport.answer import Answer
from zq.http.transport.gate import peer_of
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope

MANAGE = KeyScope.MANAGE


class NewUserBody(msgspec.Struct):
    username: str = ""
    password: str = ""
    is_admin: bool = False


class UserPatchBody(msgspec.Struct):
    username: str | None = None
    password: str | None = None
    is_admin: bool | None = None


class GrantBody(msgspec.Struct):
    action: str = ""
    topic_pattern: str = ""


class GroupGrantBody(msgspec.Struct):
    topic_pattern: str = ""
    consumer_group: str = ""


class UserDocument(msgspec.Struct):
    """A user as clients read it: without its password."""

    id: str
    username: str
    is_admin: bool
    created_at: str
    updated_at: str


class GrantDocument(msgspec.Struct):
    """A grant as clients read it."""

    id: str
    user_id: str
    action: str
    topic_pattern: str
    created_at: str
    consumer_group: str | UnsetType = UNSET


class UsersApi:
    """Users and their grants."""

    def __init__(self, users: Users, endpoints: MessageEndpoints) -> None:
        self._users = users
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        change, own, grants = self._endpoints.change, "/users/{id}", "/users/{id}/grants"
        groups = "/users/{id}/consumer-group-grants"
        patch = change(UserPatchBody, self.change)
        grant, group = change(GrantBody, self.grant), change(GroupGrantBody, self.grant_group)
        return [
            Route("GET", "/users", self.every, MANAGE, whole=True),
            Route("POST", "/users", change(NewUserBody, self.create), MANAGE, whole=True),
            Route("PUT", own, patch, MANAGE, whole=True),
            Route("DELETE", own, self.delete, MANAGE, whole=True),
            Route("GET", grants, self.grants, MANAGE, whole=True),
            Route("POST", grants, grant, MANAGE, whole=True),
            Route("DELETE", grants + "/{grant}", self.revoke, MANAGE, whole=True),
            Route("POST", groups, group, MANAGE, whole=True),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """Every user."""
        return answer({"items": [_user(user) for user in await self._users.every()]})

    async def create(self, request: web.BaseRequest, sent: NewUserBody) -> Answer:
        """Make a user."""
        if not sent.username or not sent.password:
            raise InvalidRequest("username and password are required")
        user = await self._users.create(sent.username, sent.password, is_admin=sent.is_admin)
        return answer(_user(user), 201)

    async def change(self, request: web.BaseRequest, sent: UserPatchBody) -> Answer:
        """Change what is sent of a user."""
        id = request[PATH]["id"]
        user = await self._users.change(id, sent.username, sent.password, sent.is_admin)
        return answer(_user(user))

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete a user, who is not oneself."""
        sender = permit_of(request).user
        await self._users.delete(request[PATH]["id"], "" if sender is None else sender.id)
        return Answer(204)

    async def grants(self, request: web.BaseRequest) -> Answer:
        """The grants of a user."""
        user = await self._users.get(request[PATH]["id"])
        return answer({"items": [_grant(user.id, grant) for grant in user.grants]})

    async def grant(self, request: web.BaseRequest, sent: GrantBody) -> Answer:
        """Add a grant to read, to write or to administer."""
        if sent.action not in (Action.READ, Action.WRITE, Action.ADMIN):
            raise InvalidRequest("action must be one of: read, write, admin")
        id, pattern = request[PATH]["id"], sent.topic_pattern or ANY
        grant = await self._users.grant(id, Action(sent.action), pattern)
        return answer(_grant(id, grant), 201)

    async def grant_group(self, request: web.BaseRequest, sent: GroupGrantBody) -> Answer:
        """Add a grant to consume for a group."""
        if not sent.consumer_group:
            raise InvalidRequest("consumer_group is required")
        id, pattern = request[PATH]["id"], sent.topic_pattern or ANY
        grant = await self._users.grant(id, Action.CONSUME, pattern, sent.consumer_group)
        return answer(_grant(id, grant), 201)

    async def revoke(self, request: web.BaseRequest) -> Answer:
        """Delete a grant."""
        await self._users.revoke(request[PATH]["id"], request[PATH]["grant"])
        return Answer(204)


def _user(user: User) -> UserDocument:
    return UserDocument(
        user.id, user.name, user.is_admin, rfc3339(user.created_at), rfc3339(user.updated_at)
    )


def _grant(user: str, grant: Grant) -> GrantDocument:
    created = rfc3339(grant.created_at)
    group = UNSET if grant.group is None else grant.group
    return GrantDocument(grant.id, user, grant.action, grant.pattern, created, group)


class DoorAuth(NamedTuple):
    """The parts from which the door makes its users' sign-in."""

    access: Access
    tokens: Tokens


class LoginBody(msgspec.Struct):
    username: str = ""
    password: str = ""


class AuthApi:
    """`/auth/login` and `/auth/refresh`."""

    def __init__(self, access: Access, tokens: Tokens, endpoints: MessageEndpoints) -> None:
        self._access = access
        self._tokens = tokens
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        login = self._endpoints.change(LoginBody, self.login)
        return [
            Route("POST", "/auth/login", login, None),
            Route("POST", "/auth/refresh", self.refresh, None),
        ]

    async def login(self, request: web.BaseRequest, sent: LoginBody) -> Answer:
        """A token for a name and a password."""
        if not sent.username or not sent.password:
            raise InvalidRequest("username and password are required")
        peer = peer_of(request.transport)
        user = await self._access.login(sent.username, sent.password, peer)
        return answer({"token": self._tokens.issue(user)})

    async def refresh(self, request: web.BaseRequest) -> Answer:
        """A new token in exchange for a valid one, until twelve hours after the login."""
        user = permit_of(request).user
        assert user is not None, "the route needs a user"
        header = request.headers[hdrs.AUTHORIZATION]
        # Basic is a login at each request.
        began = self._tokens.read(header[7:].strip()).began if is_bearer(header) else None
        return answer({"token": self._tokens.issue(user, began)})


def status_route(*, required: bool) -> Route:
    """The route that says whether users have to log in. Clients ask it before they do."""

    async def status(request: web.BaseRequest) -> Answer:
        """True if users have to log in."""
        return answer({"auth_required": required})

    return Route("GET", "/auth/status", status, None)
