"""Which library is the codec of HTTP/2 connections."""

from importlib import import_module

from zq.http.h2.codec import MakeCodec

_CODECS = {"h2": "H2Codec", "zttp": "ZttpCodec"}
"""By library: the class in the module that is named after it. A module is imported when chosen."""


class LibraryMissing(Exception):
    """The chosen library is not installed; the message says how to have it."""


def codec_by(library: str) -> MakeCodec:
    """What makes a codec for each connection. Raises LibraryMissing."""
    try:
        module = import_module(f"zq.http.h2.{library}_codec")
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise LibraryMissing(
            f"--http2-engine {library}: the package {library} is not installed: run"
            f" pip install 'zq-queue[{library}]', or choose h2"
        ) from None
    make: MakeCodec = getattr(module, _CODECS[library])
    return make
