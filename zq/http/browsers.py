"""Keeps web pages out: a browser carries a page's requests to wherever its visitor can reach.

Four headers tell. `Host` names whom the client believes to talk to: a page that had its own name
point here (DNS rebinding) gives itself away by it. `Sec-Fetch-Site` and, from browsers that do not
send it, `Origin` tell which site a request comes from. A page can set none of them, and a client
that is no browser sends neither of these two.

Over plain http to a name that is no loopback one a browser sends no `Sec-Fetch-Site` at all, and no
`Origin` with what it gets for an image, a frame, a script or a `fetch` of mode no-cors. Such a
request looks like that of a client that is none, but for its `User-Agent`, which no page can set
for these either. It may read, for the browser shows the answer to no page of another site (and a
user may have typed the address); it may change nothing, and take no job.
"""

from collections.abc import Iterable

from aiohttp import hdrs, web
from multidict import istr

from zq.http.addresses import parse_address
from zq.model.errors import ForeignHost, ForeignPage

SEC_FETCH_SITE = istr("Sec-Fetch-Site")
OWN_SITES = frozenset({"same-origin", "none"})
"""Asked for by our own page, or by the user: an address typed, a bookmark."""

BROWSER = "Mozilla/"
"""What the `User-Agent` of every browser begins with."""

MOST_KNOWN = 1024


class Browsers:
    """Decides which requests come from a browser that a foreign page has sent here.

    `hosts` are names or addresses of this server besides the loopback ones and the address that a
    connection has come to; `origins` are sites whose pages may use it.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = frozenset(_name(host) for host in hosts)
        self._origins = frozenset(origins)
        self._known: set[str | tuple[str, str]] = set()

    def check(self, request: web.BaseRequest, *, reads: bool) -> None:
        """Raise `ForeignHost` or `ForeignPage`, or do nothing. `reads`: it changes nothing."""
        headers = request.headers
        host = headers.get(hdrs.HOST)
        if host is not None and host not in self._known:
            self._check_host(host, request)
        site = headers.get(SEC_FETCH_SITE)
        if site is not None:
            if site not in OWN_SITES:
                raise _foreign(f"Sec-Fetch-Site: {site}")
            return
        origin = headers.get(hdrs.ORIGIN)
        if origin is not None:
            if not self._is_own(origin, host):
                raise _foreign(f"Origin: {origin}")
        elif not reads and headers.get(hdrs.USER_AGENT, "").startswith(BROWSER):
            raise ForeignPage(
                "this request comes from a browser that does not say for which page: over plain"
                " http it may only read. Use https, or another client"
            )

    def _check_host(self, host: str, request: web.BaseRequest) -> None:
        name = _name(host)
        address = parse_address(name)
        if name in self._hosts or _is_local_name(name) or (address and address.is_loopback):
            self._remember(host)
            return
        here = _own_address(request)
        if (host, here) in self._known:
            return
        if address is None or address != parse_address(here):
            raise ForeignHost(
                f"this server does not go by the name {name!r} (Host): start it with --allow-host"
                f" {name} if it should"
            )
        self._remember((host, here))

    def _remember(self, host: str | tuple[str, str]) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.add(host)

    def _is_own(self, origin: str, host: str | None) -> bool:
        # Behind a proxy that ends TLS the schemes differ, so the place alone is compared.
        place = origin.lower().partition("://")[2]
        return origin.lower() in self._origins or (host is not None and place == host.lower())


def _name(host: str) -> str:
    """The name or address in a `Host` header, or by itself, in the form in which it is compared."""
    if parse_address(host) is not None:
        return str(parse_address(host))
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return str(parse_address(bare) or bare.lower().removesuffix("."))


def _own_address(request: web.BaseRequest) -> str:
    """The address of this machine that the connection has come to; empty once it is closed."""
    name = request.get_extra_info("sockname")
    return name[0] if isinstance(name, tuple) else ""


def _is_local_name(name: str) -> bool:
    # RFC 6761, section 6.3: names below localhost never leave the machine either.
    return name == "localhost" or name.endswith(".localhost")


def _foreign(what: str) -> ForeignPage:
    return ForeignPage(
        f"this request comes from a web page of another site ({what}); see --allow-origin"
    )
