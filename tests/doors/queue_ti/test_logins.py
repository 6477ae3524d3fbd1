"""Logins of queue-ti's door: how often they may fail, and how long they last."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conformance.raw import exchange
from conformance.site import Site
from manual_clock import ManualClock

from zq.config import Settings
from zq.doors.queue_ti.http.access import LoginLimit
from zq.doors.queue_ti.model import TooManyLogins
from zq.doors.queue_ti.opening import QueueTiDoors

from .users import ADMIN, PASSWORD, Caller, auth_settings, basic

FRIEND = "https://tools.example"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return auth_settings(tmp_path)


async def test_the_failures_of_one_user_lock_out_no_other_behind_the_same_address(
    nobody: Caller, admin: Caller
) -> None:
    await admin.make("ann")
    for n in range(10):
        await nobody.send("POST", "/auth/login", {"username": ADMIN, "password": str(n)})
    for _ in range(12):
        await nobody.login("ann")
    reply = await nobody.send("POST", "/auth/login", {"username": ADMIN, "password": PASSWORD})
    assert (reply.status, reply.headers["retry-after"]) == (429, "60")


async def test_a_program_may_begin_with_many_requests_at_once(nobody: Caller) -> None:
    caller = Caller(nobody.client, basic(ADMIN, PASSWORD))
    login = {"username": ADMIN, "password": PASSWORD}
    replies = await asyncio.gather(
        *(caller.send("GET", "/stats") for _ in range(12)),
        *(nobody.send("POST", "/auth/login", login) for _ in range(12)),
    )
    assert Counter(reply.status for reply in replies) == {200: 24}


async def test_other_passwords_at_once_are_attempts_of_their_own(nobody: Caller) -> None:
    wrong = [Caller(nobody.client, basic(ADMIN, str(n))) for n in range(12)]
    replies = await asyncio.gather(*(caller.send("GET", "/stats") for caller in wrong))
    assert Counter(reply.status for reply in replies) == {401: 10, 429: 2}


async def test_one_address_cannot_try_passwords_of_ever_other_users() -> None:
    limit = LoginLimit(ManualClock())
    for n in range(100):
        limit.count(f"user-{n}", "10.0.0.1")
    with pytest.raises(TooManyLogins):
        limit.count("user-100", "10.0.0.1")
    limit.count("user-100", "10.0.0.2")


async def test_a_changed_password_ends_tokens_and_their_renewal(
    nobody: Caller, admin: Caller
) -> None:
    id = await admin.make("ann")
    ann = await nobody.login("ann")
    assert (await ann.send("POST", "/auth/refresh")).status == 200
    await admin.send("PUT", f"/users/{id}", {"password": "another long password"})
    assert (await ann.send("POST", "/auth/refresh")).status == 401
    assert (await ann.send("GET", "/messages?topic=t")).status == 401
    await nobody.login("ann", "another long password")


async def test_the_page_of_a_named_origin_does_not_ride_on_a_stored_password(
    site: Site, admin: Caller
) -> None:
    await site.restart(allow_origin=(FRIEND,))
    for authorization, status in ((basic(ADMIN, PASSWORD), 401), (admin.authorization, 200)):
        for origin, answered in (({}, 200), ({"Origin": FRIEND}, status)):
            headers = {"Authorization": authorization, **origin}
            assert (await admin.client.send("GET", "/api/stats", None, headers)).status == answered


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
async def test_bytes_that_are_no_text_are_just_wrong(site: Site, scheme: str) -> None:
    head = f"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nAuthorization: {scheme} ".encode()
    assert (await exchange(site.port, head + b"\xe9\r\n\r\n")).status == 401


async def test_a_login_is_renewed_for_twelve_hours(site: Site, admin: Caller) -> None:
    client, token = admin.client, admin.authorization
    for _ in range(12 * 6):
        reply = await Caller(client, token).send("POST", "/auth/refresh")
        assert reply.status == 200
        token = f"Bearer {reply.doc['token']}"
        site.clock.advance(600_000)
    assert (await Caller(client, token).send("POST", "/auth/refresh")).status == 401


@pytest.mark.parametrize("has_keys", [False, True], ids=["open", "keys"])
def test_users_without_keys_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_keys: bool
) -> None:
    settings = Settings.of(**auth_settings(tmp_path), keys=tmp_path / "keys" if has_keys else None)
    QueueTiDoors(settings).prepare()
    assert ("--queue-ti-auth without --keys" in caplog.text) is not has_keys
