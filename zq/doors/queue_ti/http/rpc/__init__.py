"""The queue-ti door's gRPC: the same calls as under `/api`, on a port of their own."""

import os
from importlib.util import find_spec

from zq.http.transport.h2.codec import LibraryMissing


def require_grpc() -> None:
    """Raise `LibraryMissing` unless gRPC is installed."""
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise LibraryMissing(
            "--grpc-port: the package grpcio is not installed: run pip install 'zq-queue[grpc]', or"
            " give no port"
        )
    # Its C library writes lines of its own to stderr, unless this is set before it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
