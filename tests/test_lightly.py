"""aiohttp without its client, until somebody asks for that."""

import subprocess
import sys

PROGRAM = """
import sys
from zq.lightly import import_aiohttp_lightly

import_aiohttp_lightly()
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


def test_a_package_is_whole_once_more_of_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True, timeout=60)
