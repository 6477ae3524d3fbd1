"""What the page hides: in payloads and results by names, in errors by what follows such names."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from conformance.site import Site

from zq.engine.turns import Turns
from zq.operators.page.http.mask import LONGEST_NAME, SLICE, Mask

from .place import key_file
from .test_live import frame

DOTS = "\N{BULLET}" * 3
SECRET = "hunter2"

pytestmark = pytest.mark.settings(
    no_admin=False, admin_port=0, ui_mask="password|token", history=86_400_000
)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"a": 1, "password": "x", "b": 1.50}', '{"a": 1, "password": HID, "b": 1.50}'),
        ('{"userPassword":{"a":[1,"}"]},"c":1}', '{"userPassword":HID,"c":1}'),
        ('[{"api_token": 1}, 9223372036854775808]', '[{"api_token": HID}, 9223372036854775808]'),
        ('{"tok\\u0065n": [[]], "Token" :null}', '{"tok\\u0065n": HID, "Token" :HID}'),
        ('"login with password=abc now"', f'"login with password={DOTS} now"'),
        ('{"url": "http://x/?token=abc&n=1"}', f'{{"url": "http://x/?token={DOTS}&n=1"}}'),
        ('{"a": "}{\\"", "result": {"token": 1}}', '{"a": "}{\\"", "result": {"token": HID}}'),
        ('{"b": 1, "a": 2, "a": 3}', '{"b": 1, "a": 2, "a": 3}'),
        ("12", "12"),
    ],
    ids=["field", "object", "list", "escaped", "text", "url", "inner", "nothing", "number"],
)
async def test_a_payload_keeps_all_but_what_is_hidden(stored: str, shown: str) -> None:
    mask = Mask("password|token", Turns())
    text = '{{"id": "1", "token": "of a field of the API", "payload": {0}, "result":{0}}}'
    found = await mask.document(text.format(stored))
    assert found == text.format(shown.replace("HID", f'"{DOTS}"'))
    json.loads(found)


async def test_what_follows_a_name_in_an_error_is_hidden() -> None:
    mask = Mask("password|token", Turns())
    assert await mask.text("bad password: 'a b', try again") == f"bad password: {DOTS}, try again"
    assert await mask.text('{"password": "a b", "c": 1}') == f'{{"password": {DOTS}, "c": 1}}'
    assert await mask.text("the token is wrong") == "the token is wrong"
    assert await mask.text("my_token_2 == abc; x") == f"my_token_2 == {DOTS}; x"
    assert await mask.text('password: "a b\nc') == f"password: {DOTS}\nc"
    assert await mask.text(r"{\"token\":\"a b\"} c") == rf"{{\"token\":{DOTS}}} c"
    assert await mask.text("password=,token=a") == f"password=,token={DOTS}"


async def test_a_pattern_may_be_about_whole_names_and_about_several_words() -> None:
    assert await Mask("^pin$", Turns()).text("spin=1 pin=2") == f"spin=1 pin={DOTS}"
    assert await Mask("api[ -]key", Turns()).text("the api key is: 1; X-Api-Key: 2") == (
        f"the api key is: 1; X-Api-Key: {DOTS}"
    )
    assert await Mask("api[ -]key", Turns()).text("API key: 1") == f"API key: {DOTS}"


async def test_a_long_name_is_hidden_unseen() -> None:
    name = "x" * LONGEST_NAME
    assert json.loads(
        await Mask("token", Turns()).document(json.dumps({"payload": {name: 1, name[1:]: 2}}))
    ) == {"payload": {name: DOTS, name[1:]: 2}}


async def test_text_without_what_is_hidden_stays_as_it_was_written() -> None:
    text = '{"payload": {"a": "\\u00e9 \\/ b: c"}, "message": "d=\\u00e9"}'
    assert await Mask("token", Turns()).document(text) == text


async def test_a_long_answer_is_masked_in_slices() -> None:
    turns = Turns()
    inner = [{"token": [1, {"a": []}], "b": "token=x"}] * SLICE
    shown = [{"token": DOTS, "b": f"token={DOTS}"}] * SLICE
    document = json.loads(await Mask("token", turns).document(json.dumps({"payload": inner})))
    assert document == {"payload": shown}
    assert turns.waited >= 5
    before = turns.waited
    await Mask("token", turns).text("a=" * SLICE * 5)
    assert turns.waited - before >= 4


class Counting:
    """A compiled pattern that counts the characters that it is given to look through."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.looked_through = 0
        self._pattern = pattern

    def search(self, text: str, at: int = 0) -> re.Match[str] | None:
        self.looked_through += len(text) - at
        return self._pattern.search(text, at)


@pytest.mark.parametrize(
    "part",
    [
        "password",
        "=",
        "a=",
        " ",
        "password   ",
        "password=",
        "password='",
        'token="',
        "x.y-z w ",
        "=",
    ],
    ids=repr,
)
async def test_no_text_makes_a_mask_look_through_it_more_than_a_few_times(part: str) -> None:
    mask = Mask("password|token", Turns())
    mask._names = counting = Counting(mask._names)  # type: ignore[assignment]
    text = part * (60_000 // len(part))
    await mask.document(json.dumps({"payload": {"note": text}, "message": text}))
    assert counting.looked_through < 10 * len(text)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(trust_env=False, cookie_jar=jar) as session:
        yield session


async def failed_job(site: Site, http: aiohttp.ClientSession, key: str = "") -> str:
    """The id of a job with secrets in its payload and in the error of its attempt."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def post(path: str, body: Any) -> Any:
        async with http.post(f"{site.url}{path}", json=body, headers=headers) as answer:
            assert answer.ok, await answer.text()
            return await answer.json()

    payload = {"password": SECRET, "text": "x" * 65_536}
    job = await post("/jobs", {"queue": "mail", "type": "t", "payload": payload})
    claimed = await post("/queues/mail/claim", {"max": 1, "lease_ms": 60_000, "holder": "w"})
    failure = {"message": f"token={SECRET}", "backtrace": f"password: {SECRET}", "kill": True}
    lease = claimed["jobs"][0]["lease"]
    await post(f"/jobs/{job['id']}/failure", failure | {"lease": lease})
    return str(job["id"])


async def test_no_answer_of_the_page_has_what_is_hidden(
    site: Site, http: aiohttp.ClientSession
) -> None:
    id = await failed_job(site, http)
    for path in (
        *(f"jobs/{id}", "jobs", f"jobs/{id}/errors", f"jobs/{id}/errors/1"),
        *("failures", "history"),
    ):
        async with http.get(f"{site.admin_url}/ui/api/{path}") as answer:
            text = await answer.text()
            assert answer.status == 200, path
            assert SECRET not in text, path
            assert DOTS in text or path == "failures", path
    async with http.get(f"{site.admin_url}/ui/live", params={"topic": "failures"}) as answer:
        assert SECRET not in json.dumps(await frame(answer))
    async with http.get(
        f"{site.admin_url}/ui/api/jobs/{id}", headers={"Accept": "application/msgpack"}
    ) as answer:
        assert (answer.status, SECRET.encode() in await answer.read()) == (400, False)
    async with http.get(f"{site.url}/jobs/{id}") as answer:
        assert (await answer.json())["payload"]["password"] == SECRET


async def test_to_reveal_is_a_right_of_its_own(
    site: Site, tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    await site.restart(keys=key_file(tmp_path / "keys"))
    id = await failed_job(site, http, "allall")
    for name, status in (("all", 200), ("reader-changer", 403)):
        key = {"Authorization": f"Bearer {name * 2}"}
        for path in (f"jobs/{id}", f"jobs/{id}/errors"):
            url = f"{site.admin_url}/ui/reveal/{path}"
            async with http.get(url, headers=key) as answer:
                assert answer.status == status
                assert (SECRET in await answer.text()) == (status == 200)
        async with http.get(f"{site.admin_url}/ui/session", headers=key) as answer:
            session = await answer.json()
        assert session["masked"] is True
        assert ("reveal" in session["scopes"]) == (status == 200)


@pytest.mark.parametrize(
    ("name", "status"), [("all", 200), ("reader-changer", 403), ("reveal", 403)], ids=str
)
async def test_a_backup_through_the_page_is_for_those_who_may_see_what_is_hidden(
    site: Site, tmp_path: Path, http: aiohttp.ClientSession, name: str, status: int
) -> None:
    await site.restart(keys=key_file(tmp_path / "keys"))
    await failed_job(site, http, "allall")
    key = {"Authorization": f"Bearer {name * 2}"}
    async with http.post(f"{site.admin_url}/ui/api/backup", headers=key) as answer:
        assert answer.status == status
        await answer.read()
        if status == 403:
            assert ("reveal" if name == "reader-changer" else "manage") in await answer.text()
    # The mask is about the page: a key may still ask the listener itself.
    async with http.post(f"{site.admin_url}/backup", headers=key) as answer:
        assert answer.status == (403 if name == "reveal" else 200)


@pytest.mark.parametrize("quote", ["\\", '"', "é"], ids=["backslash", "quote", "letter"])
async def test_a_long_text_is_looked_through_in_parts(quote: str) -> None:
    turns = Turns()
    said = f"token={quote * 3} and " + quote * 200_000 + " token=x"
    stored = {"payload": [said, {"a": said, "token": said}], "message": said}
    text = await Mask("token", turns).document(json.dumps(stored))
    shown = json.loads(text)
    assert shown["payload"][1]["token"] == DOTS
    assert shown["message"] == shown["payload"][0] == shown["payload"][1]["a"]
    assert shown["message"].endswith(f"token={DOTS}")
    assert turns.waited >= 4
