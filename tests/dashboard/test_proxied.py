"""The page below `/a/b/`, behind a proxy that strips this path and behind one that keeps it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from documents import code
from playwright.sync_api import Page, Request, expect
from process.test_proxies import caddy, nginx, places

from bench.ports import free_port

from .place import Place, key_file, seed, serving, until

Proxy = Callable[[Path, str], list[str]]
PROXIES: dict[str, Proxy] = {"page-nginx": nginx, "page-caddy": caddy}


@contextlib.contextmanager
def behind(name: str, directory: Path) -> Iterator[tuple[str, Place]]:
    """Where the proxy of this recipe shows the page, and the server behind it."""
    port = free_port()
    public = f"http://127.0.0.1:{port}/a/b/"
    flags = ("--public-url", public, "--keys", str(key_file(directory / "keys")))
    with serving(directory / "data", *flags) as place:
        recipe = code(name)
        for there, here in (
            ("127.0.0.1:8901", place.admin.partition("://")[2]),
            ("8080", str(port)),
            ("/queue/", "/a/b/"),
        ):
            assert there in recipe
            recipe = recipe.replace(there, here)
        command, environment = PROXIES[name](directory, recipe), places(directory)
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        ) as proxy:
            try:
                _wait_for(f"{public}ui/", proxy)
                yield f"{public}ui", place
            finally:
                os.killpg(proxy.pid, signal.SIGKILL)


def _wait_for(url: str, proxy: "subprocess.Popen[bytes]") -> None:
    def answers() -> bool:
        assert proxy.poll() is None
        with contextlib.suppress(httpx.ConnectError):
            assert httpx.get(url, trust_env=False).status_code == 200
            return True
        return False

    until(answers)


@pytest.mark.parametrize("name", PROXIES)
def test_the_page_works_below_a_path(name: str, tmp_path: Path, page: Page) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    with behind(name, tmp_path) as (url, place):
        ids = seed(place.primary, {"Authorization": "Bearer allall"})
        # Without the last slash, as people type it.
        page.goto(url)
        page.get_by_label("Access key").fill("allall")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator(".findings li").first).to_be_visible()
        cookie = page.context.cookies()[0]
        assert (cookie["path"], cookie["sameSite"]) == ("/a/b/ui", "Strict")
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Queues").click()
        queues = page.get_by_role("table", name="Queues", exact=True)
        queues.get_by_role("link", name="died", exact=True).click()
        page.locator(f"tr[data-key='{ids['dead']}'] th a").click()
        page.get_by_role("button", name="Delete…", exact=True).click()
        dialog = page.get_by_role("dialog")
        line = f'curl -X DELETE {url}/api/jobs/{ids["dead"]} -H "Authorization: Bearer $ZQ_TOKEN"'
        expect(dialog.get_by_label("curl", exact=True)).to_have_text(line)
        dialog.get_by_role("button", name="Delete 1 job").click()
        expect(page.locator(".toast")).to_contain_text("is deleted.")
        page.goto("about:blank")
    urls = [request.url for request in asked if request.url.startswith("http")]
    assert all(each.startswith(url) for each in urls), urls
