"""aiohttp's server without its client, and without what else a server seldom uses."""

import subprocess
import sys

BEGIN = """
import sys
from zq.lightly import import_aiohttp_lightly

import_aiohttp_lightly(with_tls=False)
"""

WHOLE = """
from aiohttp import hdrs, web
from aiohttp.web_request import BaseRequest

assert web.BaseRequest is BaseRequest and hdrs.HOST == "Host"
assert {"aiohttp.client", "aiohttp.web_app"}.isdisjoint(sys.modules)

import aiohttp

assert aiohttp.ClientSession and aiohttp.__version__ and aiohttp.web is web
assert web.Application and web.BaseRequest is BaseRequest
for module in (aiohttp, web):
    try:
        module.nothing_of_this_name
    except AttributeError:
        continue
    raise SystemExit("a name that is not there was found")
"""

LATE = """
import asyncio

from aiohttp import helpers, web_protocol, web_request

kept_out = {"_ssl", "_hashlib", "attr.validators", "email", "html", "http.client"}
assert kept_out.isdisjoint(sys.modules), kept_out & sys.modules.keys()

found, options = helpers.parse_content_type('text/plain; charset="utf-8"')
assert found == "text/plain" and options["charset"] == "utf-8"
assert helpers.parse_content_type("nothing")[0] == "application/octet-stream"
assert helpers.parse_http_date("Fri, 27 Nov 2026 15:00:00 GMT").year == 2026
assert isinstance(helpers.proxies_from_env(), dict)
assert web_protocol.html_escape("<") == "&lt;"
assert not isinstance(None, web_request.BodyPartReader)
with web_request.SpooledTemporaryFile() as file:
    file.write(b"a")

import email.parser, hashlib, html, ssl

assert email.parser.HeaderParser and html.unescape("&lt;") == "<"
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
assert ssl.create_default_context().check_hostname
assert asyncio.sslproto.SSLProtocol and asyncio.base_events.ssl is ssl
"""


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BEGIN + program], check=True, timeout=60)


def test_a_package_is_whole_once_more_of_it_is_asked_for() -> None:
    run(WHOLE)


def test_what_a_server_seldom_uses_comes_when_it_is_used() -> None:
    run(LATE)
