"""Users of queue-ti's door in tests: an administrator, and others with their grants."""

import base64
from pathlib import Path
from typing import Any

from conformance.client import Client, Reply

ADMIN, PASSWORD = "admin", "secret"
LONG = "correct horse battery"
"""The password of every user besides the first."""


def auth_settings(folder: Path) -> dict[str, Any]:
    """The settings of a server with users."""
    admin, secret = folder / "admin", folder / "secret"
    admin.write_text(f"{ADMIN}:{PASSWORD}\n")
    secret.write_text("s" * 32)
    return {"queue_ti_auth": True, "queue_ti_admin": admin, "queue_ti_secret": secret}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class Caller:
    """Requests under `/api` with credentials, or none."""

    def __init__(self, client: Client, authorization: str | None = None) -> None:
        self.client = client
        self.authorization = authorization

    async def send(self, method: str, target: str, doc: Any = None, **headers: str) -> Reply:
        sent = {"content-type": "application/json", **headers}
        if self.authorization is not None:
            sent["authorization"] = self.authorization
        body = None if doc is None else self.client.wire.encode(doc)
        return await self.client.send(method, f"/api{target}", body=body, headers=sent)

    async def login(self, name: str, password: str = LONG) -> "Caller":
        """The same client as a user that has logged in."""
        reply = await self.send("POST", "/auth/login", {"username": name, "password": password})
        assert reply.status == 200, reply.body
        return Caller(self.client, f"Bearer {reply.doc['token']}")

    async def make(self, name: str, *grants: tuple[str, str], is_admin: bool = False) -> str:
        """Make a user with grants (action and pattern, or `consume:GROUP` and pattern); its id."""
        doc = {"username": name, "password": LONG, "is_admin": is_admin}
        reply = await self.send("POST", "/users", doc)
        assert reply.status == 201, reply.body
        id: str = reply.doc["id"]
        for action, pattern in grants:
            await self.grant(id, action, pattern)
        return id

    async def grant(self, id: str, action: str, pattern: str) -> str:
        word, _, group = action.partition(":")
        if word == "consume":
            doc = {"topic_pattern": pattern, "consumer_group": group}
            reply = await self.send("POST", f"/users/{id}/consumer-group-grants", doc)
        else:
            doc = {"topic_pattern": pattern, "action": action}
            reply = await self.send("POST", f"/users/{id}/grants", doc)
        assert reply.status == 201, reply.body
        grant: str = reply.doc["id"]
        return grant


async def admin_of(client: Client) -> Caller:
    return await Caller(client).login(ADMIN, PASSWORD)
