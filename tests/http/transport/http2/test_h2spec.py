"""h2spec, every case of it, against a real server in the clear and over TLS."""

import asyncio
from pathlib import Path
from xml.etree import ElementTree

import pytest
from process.server import running
from tls.authority import Authority

TOOL = Path(__file__).parent / "h2spec" / "bin" / "h2spec"
CASES = 145

ANSWERED = "a malformed request gets a 400, as in HTTP/1.1; RFC 9113, 8.1.1 allows an answer first"
NO_HTTP_2 = "what begins otherwise is HTTP/1.1 by the rule of the port: it gets a 400 in that"

PRIORITIES = "zttp reads no priorities, which RFC 9113 has dropped"
TABLE_SIZE = "zttp refuses a table that is made larger than the settings say by another code"

WITH_H2 = {
    "http2/3.5/2": NO_HTTP_2,
    "http2/8.1.2/1": ANSWERED,  # a name in upper case
    "http2/8.1.2.1/1": ANSWERED,  # an unknown pseudo-header field
    "http2/8.1.2.1/2": ANSWERED,  # one of answers
    "http2/8.1.2.1/4": ANSWERED,  # one after the others
    "http2/8.1.2.2/1": ANSWERED,  # a field of the connection
    "http2/8.1.2.2/2": ANSWERED,  # a TE other than "trailers"
    "http2/8.1.2.3/1": ANSWERED,  # an empty path
    "http2/8.1.2.3/2": ANSWERED,  # no method
    "http2/8.1.2.3/3": ANSWERED,  # no scheme
    "http2/8.1.2.3/4": ANSWERED,  # no path
    "http2/8.1.2.3/5": ANSWERED,  # two methods
    "http2/8.1.2.3/6": ANSWERED,  # two schemes
    "http2/8.1.2.3/7": ANSWERED,  # two paths
}
WITH_ZTTP = {
    "http2/3.5/2": NO_HTTP_2,
    "http2/5.3.1/1": PRIORITIES,
    "http2/5.3.1/2": PRIORITIES,
    "hpack/6.3/1": TABLE_SIZE,
}
DIFFERS = {"h2": WITH_H2, "zttp": WITH_ZTTP}
"""The cases that this server does not meet, all of them, each with its reason, by library."""

PARTS = {
    "h2": (
        ("generic", "hpack", *(f"http2/{section}" for section in "34567")),
        ("http2/8.1/1", "http2/8.1.2.6", "http2/8.2"),
        ("http2/8.1.2.1/3",),
        *((case,) for case in WITH_H2 if case.startswith("http2/8.1.2")),
    ),
    "zttp": (
        ("generic", "http2/3", "http2/4", "http2/5.1", "http2/5.4", "http2/5.5"),
        ("http2/6", "http2/7", "http2/8", "hpack/2", "hpack/4", "hpack/5", "hpack/6.1"),
        *((case,) for case in WITH_ZTTP if case != "http2/3.5/2"),
    ),
}
"""What one run of the tool takes, by library.

The tool waits to the end of its patience for each case that differs, so these run by themselves
with little patience. `http2/3.5/2` is not waited for: it gets an answer.
"""

PATIENCE_S, DISAPPOINTMENT_S = 20, 2
"""How long the tool waits for what is to come, and for what probably does not."""


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_the_cases_that_differ_are_those_that_are_told(
    http2_engine: str, secure: bool, tmp_path: Path
) -> None:
    assert TOOL.exists(), "sh .ci/setup dev builds h2spec"
    flags: tuple[str, ...] = ()
    if secure:
        cert, key = Authority(tmp_path / "certificates").issue("server")
        flags = ("--tls-cert", str(cert), "--tls-key", str(key))
    flags += ("--http2-engine", http2_engine)
    async with running(tmp_path / "data", *flags) as server:
        runs = [
            _run(server.port, secure, part, tmp_path / f"{number}.xml")
            for number, part in enumerate(PARTS[http2_engine])
        ]
        passed = {case: ok for run in await asyncio.gather(*runs) for case, ok in run.items()}
    assert len(passed) == CASES
    assert {case for case, ok in passed.items() if not ok} == set(DIFFERS[http2_engine])


async def _run(port: int, secure: bool, part: tuple[str, ...], report: Path) -> dict[str, bool]:
    """Whether each case of a part has passed, by its number."""
    process = await asyncio.create_subprocess_exec(
        *(str(TOOL), "--host", "127.0.0.1", "--port", str(port), "--path", "/health"),
        *(("--tls", "--insecure") if secure else ()),
        *("--timeout", str(DISAPPOINTMENT_S if part[0] in WITH_H2 | WITH_ZTTP else PATIENCE_S)),
        *("--junit-report", str(report), *part),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    print(said)  # for who looks why a case has failed
    return _judgements(report, part[0] if len(part) == 1 else "")


def _judgements(report: Path, only: str) -> dict[str, bool]:
    """Cases are numbered within their section, but the one that was run alone has its own name."""
    found: dict[str, bool] = {}
    for suite in ElementTree.parse(report).iter("testsuite"):
        for number, case in enumerate(suite.iter("testcase"), start=1):
            found[only or f"{case.get('package')}/{number}"] = len(case) == 0
    return found
