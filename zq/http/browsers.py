"""Browsers: which of their requests the server's own page sends, or the user, or another page."""

from collections.abc import Iterable

from aiohttp import hdrs, web
from multidict import istr

from zq.http.transport.addresses import parse_address
from zq.model.errors import ForeignHost, ForeignPage

SEC_FETCH_SITE = istr("Sec-Fetch-Site")

OWN_SITES = frozenset({"same-origin", "none"})
"""Requests of our own page or of the user, who has typed the address or used a bookmark."""

BROWSER = "Mozilla/"
"""The `User-Agent` of every browser begins with this."""

MOST_KNOWN = 1024

GUEST = web.RequestKey("guest", bool)
"""Set on a request of a page of another site that `--allow-origin` names."""


def is_guest(request: web.BaseRequest) -> bool:
    """True if a page of another site has sent a request.

    What a browser adds by itself (a cookie, a stored password, a certificate) is the user's, not
    the page's. It says nothing about what the page may do.
    """
    # Looking for what is not there costs a request as much as its JSON.
    return hdrs.ORIGIN in request.headers and GUEST in request


class Browsers:
    """Keeps web pages out: a browser sends a page's requests to every host that its user can reach.

    Four headers help. `Host` names the server that the client believes to talk to. It exposes a
    page whose own name points here (DNS rebinding). `Sec-Fetch-Site` and, from browsers that do not
    send it, `Origin` tell the site of a request. A page can set none of them, and other clients
    than browsers send neither of these two.

    Over plain http, to a name that is not a loopback name, a browser never sends `Sec-Fetch-Site`.
    It sends no `Origin` for an image, a frame, a script or a `fetch` of mode no-cors. Such a
    request looks like one from another client, except for its `User-Agent`, which no page can set
    for these either. It may read, since the browser shows the answer to no page of another site
    (and a user may have typed the address). It may change nothing, and take no job.

    `hosts` are names or addresses of this server besides the loopback ones and the address of the
    connection. `origins` are sites whose pages may use it, as guests, and `public` is the origin at
    which a proxy shows this server. With `any_address` the server accepts
    every address but the wildcard ones as its own: a port may be forwarded to it, and a page whose
    `Host` is an address was not reached by a name that could point here.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        origins: Iterable[str],
        *,
        public: str | None = None,
        any_address: bool = False,
    ) -> None:
        self._any_address = any_address
        self._hosts = frozenset(_name(host) for host in hosts)
        self._origins = frozenset(origins)
        self._public = public
        self._known: set[str | tuple[str, str]] = set()

    def check(self, request: web.BaseRequest, *, reads: bool) -> None:
        """Raise `ForeignHost` or `ForeignPage`, or do nothing. `reads`: it changes nothing."""
        headers = request.headers
        host = headers.get(hdrs.HOST)
        if host is not None and host not in self._known:
            self._check_host(host, request)
        origin = headers.get(hdrs.ORIGIN)
        if origin is not None and origin.lower() == self._public:
            return
        site = headers.get(SEC_FETCH_SITE)
        if origin is not None and origin.lower() in self._origins:
            if site not in OWN_SITES and not _is_own(origin, host):
                request[GUEST] = True
            return
        if site is not None:
            if site not in OWN_SITES:
                raise _foreign(f"Sec-Fetch-Site: {site}")
            return
        if origin is not None:
            if not _is_own(origin, host):
                raise _foreign(f"Origin: {origin}")
        elif not reads and headers.get(hdrs.USER_AGENT, "").startswith(BROWSER):
            raise ForeignPage(
                "this request comes from a browser that does not say for which page: over plain"
                " http it may only read. Use https, or another client"
            )

    def _check_host(self, host: str, request: web.BaseRequest) -> None:
        name = _name(host)
        address = parse_address(name)
        anywhere = self._any_address and address is not None and not address.is_unspecified
        local = _is_local_name(name) or (address is not None and address.is_loopback)
        if name in self._hosts or local or anywhere:
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


def _is_own(origin: str, host: str | None) -> bool:
    # Behind a proxy that ends TLS the schemes differ, so only the host is compared.
    return host is not None and origin.lower().partition("://")[2] == host.lower()


def _name(host: str) -> str:
    """The name or address in a `Host` header, or by itself, in the form for comparison."""
    if parse_address(host) is not None:
        return str(parse_address(host))
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return str(parse_address(bare) or bare.lower().removesuffix("."))


def _own_address(request: web.BaseRequest) -> str:
    """The address of this machine on the connection; empty once it is closed."""
    name = request.get_extra_info("sockname")
    return name[0] if isinstance(name, tuple) else ""


def _is_local_name(name: str) -> bool:
    # RFC 6761, section 6.3: names below localhost never leave the machine either.
    return name == "localhost" or name.endswith(".localhost")


def _foreign(what: str) -> ForeignPage:
    return ForeignPage(
        f"this request comes from a web page of another site ({what}); see --allow-origin"
    )
