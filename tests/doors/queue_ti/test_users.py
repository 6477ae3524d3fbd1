"""Users of queue-ti's door: logging in, what lasts of it, and their lives."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from conformance.keyed import secret, write_keys
from conformance.site import Site

from zq.config import Settings
from zq.doors.queue_ti.model import Action, Grant, GrantMissing, Permit, User
from zq.model.keys import InvalidKey
from zq.setting import ConfigError

from .users import ADMIN, LONG, PASSWORD, Caller, auth_settings, basic


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return auth_settings(tmp_path)


async def test_a_login_gives_a_token_for_a_quarter_of_an_hour(site: Site, nobody: Caller) -> None:
    assert (await nobody.send("GET", "/auth/status")).doc == {"auth_required": True}
    login = {"username": ADMIN, "password": PASSWORD}
    token = (await nobody.send("POST", "/auth/login", login)).doc["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert set(claims) == {"uid", "sub", "adm", "iat", "exp", "auth_time", "pwd"}
    assert (claims["sub"], claims["adm"]) == (ADMIN, True)
    assert claims["exp"] - claims["iat"] == 900
    assert jwt.get_unverified_header(token)["alg"] == "HS256"

    admin = Caller(nobody.client, f"Bearer {token}")
    site.clock.advance(14 * 60_000)
    fresh = Caller(
        nobody.client, f"Bearer {(await admin.send('POST', '/auth/refresh')).doc['token']}"
    )
    site.clock.advance(60_000)
    over = await admin.send("GET", "/stats")
    assert (over.status, over.doc) == (401, {"error": "invalid or expired token"})
    assert (await fresh.send("GET", "/stats")).status == 200


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        ({}, 400, "username and password are required"),
        ({"username": ADMIN}, 400, "username and password are required"),
        ({"username": ADMIN, "password": "wrong"}, 401, "invalid credentials"),
        ({"username": "nobody", "password": PASSWORD}, 401, "invalid credentials"),
    ],
    ids=["nothing", "no password", "wrong password", "unknown"],
)
async def test_a_login_that_is_wrong_is_refused(
    nobody: Caller, sent: dict[str, str], status: int, error: str
) -> None:
    reply = await nobody.send("POST", "/auth/login", sent)
    assert (reply.status, reply.doc) == (status, {"error": error})


def forged(**changes: Any) -> str:
    claims = {"uid": "x", "sub": ADMIN, "adm": True, "iat": 0, "exp": 2**40} | changes
    return jwt.encode(claims, "t" * 32, "HS256")


@pytest.mark.parametrize(
    ("authorization", "error"),
    [
        (None, "missing authorization header"),
        ("Digest x", "unsupported auth scheme"),
        ("Bearer x", "invalid or expired token"),
        (f"Bearer {forged()}", "invalid or expired token"),
        (f"Bearer {jwt.encode({'uid': 'x'}, 's' * 32)}", "invalid or expired token"),
        (f"Bearer {jwt.encode({'uid': 'x'}, '', 'none')}", "invalid or expired token"),
        (basic(ADMIN, "wrong"), "invalid credentials"),
        ("Basic ?", "invalid credentials"),
    ],
    ids=["none", "scheme", "no token", "forged", "claims", "unsigned", "password", "base64"],
)
async def test_credentials_that_are_wrong_are_refused(
    nobody: Caller, authorization: str | None, error: str
) -> None:
    reply = await Caller(nobody.client, authorization).send("GET", "/stats")
    assert (reply.status, reply.doc) == (401, {"error": error})
    assert reply.headers["www-authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
async def test_credentials_of_other_letters_are_refused(site: Site, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} \u00e9"}
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.get(f"{site.url}/api/stats", headers=headers) as answer,
    ):
        assert answer.status == 401


async def test_basic_is_checked_against_the_same_users_until_a_password_changes(
    nobody: Caller, admin: Caller
) -> None:
    first = Caller(nobody.client, basic(ADMIN, PASSWORD))
    overrides = {"max_retries": 5}
    assert (await first.send("PUT", "/topic-configs/orders", overrides)).status == 200
    id = await admin.make("ann", is_admin=True)
    ann = Caller(nobody.client, basic("ann", LONG))
    assert [(await ann.send("GET", "/stats")).status for _ in range(2)] == [200, 200]
    changed = await admin.send("PUT", f"/users/{id}", {"password": LONG + "!"})
    assert changed.status == 200
    assert (await ann.send("GET", "/stats")).status == 401


async def test_rights_that_are_lost_are_lost_at_once(nobody: Caller, admin: Caller) -> None:
    id = await admin.make("ann", is_admin=True)
    ann = await nobody.login("ann")
    assert (await ann.send("GET", "/stats")).status == 200
    await admin.send("PUT", f"/users/{id}", {"is_admin": False})
    reply = await ann.send("GET", "/stats")
    assert (reply.status, reply.doc) == (403, {"error": "admin access required"})
    grant = await admin.grant(id, "write", "t")
    message = {"topic": "t", "payload": "x"}
    assert (await ann.send("POST", "/messages", message)).status == 201
    assert (await admin.send("DELETE", f"/users/{id}/grants/{grant}")).status == 204
    reply = await ann.send("POST", "/messages", message)
    assert (reply.status, reply.doc) == (403, {"error": "insufficient permissions"})
    assert (await admin.send("DELETE", f"/users/{id}")).status == 204
    assert (await ann.send("POST", "/auth/refresh")).status == 401


@pytest.mark.parametrize("way", ["login", "basic"])
async def test_passwords_are_not_found_by_trying(site: Site, nobody: Caller, way: str) -> None:
    async def attempt(n: int) -> Any:
        # A header says nothing about who tries.
        headers = {"x-real-ip": f"10.0.0.{n}", "x-forwarded-for": f"10.0.0.{n}"}
        if way == "basic":
            trier = Caller(nobody.client, basic(ADMIN, str(n)))
            return await trier.send("GET", "/stats", **headers)
        login = {"username": ADMIN, "password": str(n)}
        return await nobody.send("POST", "/auth/login", login, **headers)

    assert {(await attempt(n)).status for n in range(10)} == {401}
    reply = await attempt(10)
    assert (reply.status, reply.headers["retry-after"]) == (429, "60")
    assert (await nobody.send("GET", "/auth/status")).status == 200
    site.clock.advance(60_000)
    assert (await attempt(11)).status == 401


async def test_users_are_made_changed_and_deleted(nobody: Caller, admin: Caller) -> None:
    id = await admin.make("ann")
    (_, shown) = (await admin.send("GET", "/users")).doc["items"]
    assert {name: shown[name] for name in ("id", "username", "is_admin")} == {
        "id": id,
        "username": "ann",
        "is_admin": False,
    }
    assert set(shown) == {"id", "username", "is_admin", "created_at", "updated_at"}
    changed = (await admin.send("PUT", f"/users/{id}", {"username": "bea"})).doc
    assert (changed["username"], changed["is_admin"]) == ("bea", False)
    assert (await nobody.login("bea")).authorization
    assert (await admin.send("DELETE", f"/users/{id}")).status == 204
    assert (await admin.send("DELETE", f"/users/{id}")).status == 404


async def test_what_no_user_can_be_is_refused(admin: Caller) -> None:
    (own,) = (await admin.send("GET", "/users")).doc["items"]
    id = await admin.make("ann")
    group = {"topic_pattern": "t", "consumer_group": "g"}
    refused = [
        ("POST", "/users", {"username": "x"}, 400),
        ("POST", "/users", {"username": "x", "password": "short"}, 400),
        ("POST", "/users", {"username": "a:b", "password": LONG}, 400),
        ("POST", "/users", {"username": "ann", "password": LONG}, 409),
        ("PUT", f"/users/{id}", {"username": ADMIN}, 409),
        ("PUT", f"/users/{id}", {"password": "short"}, 400),
        ("PUT", "/users/nobody", {"is_admin": True}, 404),
        ("DELETE", f"/users/{own['id']}", None, 400),
        ("GET", "/users/nobody/grants", None, 404),
        ("POST", "/users/nobody/grants", {"action": "read"}, 404),
        ("POST", f"/users/{id}/grants", {"action": "consume"}, 400),
        ("POST", f"/users/{id}/grants", {"action": "own"}, 400),
        ("POST", f"/users/{id}/consumer-group-grants", {"topic_pattern": "t"}, 400),
        ("POST", f"/users/{id}/consumer-group-grants", group, 201),
        ("POST", f"/users/{id}/consumer-group-grants", group, 409),
        ("DELETE", f"/users/{id}/grants/nothing", None, 404),
    ]
    for method, target, doc, status in refused:
        reply = await admin.send(method, target, doc)
        assert reply.status == status, (method, target, doc, reply.body)


async def test_there_is_always_an_administrator(nobody: Caller, admin: Caller) -> None:
    """The original lets the last one go. Then nobody can make another one."""
    (own,) = (await admin.send("GET", "/users")).doc["items"]
    demote, mine = {"is_admin": False, "username": "x"}, f"/users/{own['id']}"
    reply = await admin.send("PUT", mine, demote)
    assert (reply.status, reply.headers["zq-error"]) == (409, "last_admin")
    assert "another user an administrator first" in reply.doc["error"]
    assert (await admin.send("GET", "/users")).doc["items"] == [own], "nothing has changed"

    ann = f"/users/{await admin.make('ann', is_admin=True)}"
    second = await nobody.login("ann")
    deeds = [admin.send("PUT", ann, demote), second.send("DELETE", mine)]
    statuses = {reply.status for reply in await asyncio.gather(*deeds)}
    assert statuses & {200, 204} and statuses & {401, 403, 409}, "one of the two comes first"
    left = await (second if 204 in statuses else admin).send("GET", "/users")
    assert sum(user["is_admin"] for user in left.doc["items"]) == 1


async def test_grants_are_listed_and_their_pattern_is_all_topics_unless_it_is_named(
    admin: Caller,
) -> None:
    id = await admin.make("ann")
    await admin.send("POST", f"/users/{id}/grants", {"action": "read"})
    await admin.grant(id, "consume:g", "orders.*")
    items = (await admin.send("GET", f"/users/{id}/grants")).doc["items"]
    shown = [(i["action"], i["topic_pattern"], i.get("consumer_group")) for i in items]
    assert sorted(shown, key=str) == [("consume", "orders.*", "g"), ("read", "*", None)]
    assert {i["user_id"] for i in items} == {id}


def permit(*grants: tuple[Action, str, str | None]) -> Permit:
    made = [
        Grant(str(n), action, pattern, 0, group)
        for n, (action, pattern, group) in enumerate(grants)
    ]
    return Permit(User("1", "ann", "", False, 0, 0, tuple(made)))


@pytest.mark.parametrize(
    ("pattern", "topic", "covers"),
    [
        ("*", "orders", True),
        ("orders", "orders", True),
        ("orders", "orders.x", False),
        ("orders.*", "orders.x", True),
        ("orders.*", "orders.x.y", True),
        ("orders.*", "orders", False),
        ("orders.*", "ordersx", False),
    ],
)
def test_a_pattern_covers_topics(pattern: str, topic: str, covers: bool) -> None:
    assert Grant("1", Action.READ, pattern, 0).covers(topic) is covers


def test_grants_to_consume_limit_writers_to_their_groups() -> None:
    write, consume = Action.WRITE, Action.CONSUME
    permit((write, "t", None)).require_consuming("t", "any")
    both = permit((write, "t", None), (consume, "t", "g"))
    both.require_consuming("t", None)
    both.require_consuming("t", "g")
    for refused, topic, group in (
        (both, "t", "other"),
        (permit((Action.READ, "t", None)), "t", None),
        (permit((consume, "t", "g")), "u", "g"),
    ):
        with pytest.raises(GrantMissing):
            refused.require_consuming(topic, group)


async def test_a_group_cannot_be_consumed_by_the_name_of_its_queue(
    nobody: Caller, admin: Caller
) -> None:
    for group in ("a", "b"):
        await admin.send("POST", "/topics/t/consumer-groups", {"consumer_group": group})
    await admin.make("ann", ("consume:b", "*"), ("write", "*"))
    await admin.make("bob", ("consume:b", "t"))
    await admin.send("POST", "/messages", {"topic": "t", "payload": "x"})
    (of_a,) = (await admin.send("POST", "/messages/dequeue", {"topic": "t@a"})).doc["messages"]
    for name in ("ann", "bob"):
        user = await nobody.login(name)
        assert (await user.send("POST", "/messages/dequeue", {"topic": "t@a"})).status == 403
        assert (await user.send("POST", f"/messages/{of_a['id']}/ack")).status == 403
    bob = await nobody.login("bob")
    (of_b,) = (await bob.send("POST", "/messages/dequeue", {"topic": "t@b"})).doc["messages"]
    assert (await bob.send("POST", f"/messages/{of_b['id']}/ack")).status == 204


async def test_users_and_their_tokens_outlive_a_restart_and_the_first_is_made_once(
    site: Site, nobody: Caller, admin: Caller, tmp_path: Path
) -> None:
    await admin.make("ann", ("read", "*"))
    (tmp_path / "admin").write_text("other:secret")
    await site.restart()
    names = [user["username"] for user in (await admin.send("GET", "/users")).doc["items"]]
    assert names == [ADMIN, "ann"]
    ann = await nobody.login("ann")
    assert (await ann.send("GET", "/messages")).status == 200


async def test_without_users_nothing_is_asked_and_no_user_can_be_made(
    site: Site, nobody: Caller
) -> None:
    await site.restart(queue_ti_auth=False)
    assert (await nobody.send("GET", "/auth/status")).doc == {"auth_required": False}
    ignored = Caller(nobody.client, basic("any", "thing"))
    assert (await ignored.send("GET", "/stats")).status == 200
    assert (await nobody.send("GET", "/users")).status == 404


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("secret", "short", "--queue-ti-secret .*at least 32"),
        ("admin", "no colon", "--queue-ti-admin .*name:password"),
        ("admin", "admin:", "--queue-ti-admin .*name:password"),
    ],
)
async def test_files_that_cannot_be_used_stop_the_start(
    site: Site, tmp_path: Path, file: str, text: str, error: str
) -> None:
    await site.stop()
    (tmp_path / file).write_text(text)
    with pytest.raises(InvalidKey, match=error):
        await site.build().start()


async def test_a_server_on_which_nobody_could_log_in_does_not_start(tmp_path: Path) -> None:
    site = Site(tmp_path / "data", {"queue_ti_auth": True})
    with pytest.raises(ConfigError, match="nobody could log in"):
        await site.start()
    with pytest.raises(ConfigError, match="--queue-ti-auth is about the door queue-ti"):
        Settings.of(queue_ti_auth=True, doors=())


class TestKeys:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> dict[str, Any]:
        return {"keys": write_keys(tmp_path / "keys"), **auth_settings(tmp_path)}

    async def test_a_user_needs_a_key_as_well(self, nobody: Caller, admin: Caller) -> None:
        def key(name: str) -> dict[str, str]:
            return {"zq-key": secret(name)}

        assert (await nobody.send("GET", "/stats", **key("root"))).status == 401
        assert (await admin.send("GET", "/stats")).status == 401
        assert (await admin.send("GET", "/stats", **key("wrong"))).status == 401
        assert (await admin.send("GET", "/stats", **key("root"))).status == 200
        assert (await admin.send("GET", "/stats", **key("not-read"))).status == 403
        message = {"topic": "t", "payload": "x"}
        assert (await admin.send("POST", "/messages", message, **key("shop"))).status == 403
        header = base64.b64encode(b"root:" + secret("root").encode()).decode()
        alone = Caller(nobody.client, f"Basic {header}")
        assert (await alone.send("GET", "/stats")).status == 401
