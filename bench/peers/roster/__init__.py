"""The peers that take part. The others are compared with the first of `contenders()`."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.roster import in_files, on_postgresql, on_redis, on_servers
from bench.peers.roster.peer import Contender, Mode, Peer

__all__ = ["Contender", "Mode", "Peer", "contenders", "named", "peers"]


def peers() -> tuple[Peer, ...]:
    return (
        on_servers.ours()
        + on_postgresql.ours()
        + on_redis.PEERS
        + in_files.PEERS
        + on_postgresql.PEERS
        + on_servers.PEERS
    )


def contenders() -> list[Contender]:
    return [Contender(peer, mode) for peer in peers() for mode in peer.modes]


def named(names: Sequence[str]) -> list[Contender]:
    """The contenders with these names; a peer's name means all its modes. ValueError if unknown."""
    known = contenders()
    for name in names:
        if not any(name in (each.name, each.peer.name) for each in known):
            raise ValueError(f"no such peer: {name}")
    return [each for each in known if {each.name, each.peer.name} & set(names)]
