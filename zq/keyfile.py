"""The key file on the disk. A server reads it, and `zq keys` edits it. See `zq.model.keys`."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from zq.model.keys import InvalidKey, Key, KeyRing, is_comment, parse_keys


def read(path: Path) -> KeyRing:
    """The keys in a file. Raises `InvalidKey`, also if the file cannot be read."""
    return parse_keys(_text(path), str(path))


def add(path: Path, key: Key) -> None:
    """Add a key to a file, which is made if it is missing. Raises `InvalidKey`."""
    with _edited(path) as lines:
        parse_keys("\n".join(lines), str(path)).add(key)
        lines.append(key.line)


def revoke(path: Path, name: str) -> None:
    """Remove a key from a file. Raises `InvalidKey` if it is not there."""
    with _edited(path) as lines:
        if parse_keys("\n".join(lines), str(path)).named(name) is None:
            raise InvalidKey(f"{path}: there is no key named {name!r}; `zq keys list` shows them")
        lines[:] = [line for line in lines if is_comment(line) or line.split()[0] != name]


@contextlib.contextmanager
def _edited(path: Path) -> Iterator[list[str]]:
    """The lines of a file, for changes. They are written back together if nothing is raised."""
    with _alone_in(path.parent):
        lines = _text(path).rstrip("\n").split("\n") if path.exists() else []
        yield lines
        _replace(path, "".join(f"{line}\n" for line in lines))


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep other editors out. Each of two would write back what it had read."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise _unusable(directory, error, ": make the directory first") from None
    except OSError as error:
        raise _unusable(directory, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Replace the old file by a new one. A crash leaves one of them complete.

    It keeps mode and owner. A new file is only for its owner, who is the directory's: root may make
    it for a server that runs as another user.
    """
    try:
        model = (path if path.exists() else path.parent).stat()
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                if path.exists():
                    os.fchmod(file.fileno(), model.st_mode & 0o777)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), model.st_uid, model.st_gid)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise _unusable(path, error) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise _unusable(path, error, ": `zq keys add` makes it") from None
    except PermissionError as error:
        raise _unusable(path, error, ": let the user of this process read it") from None
    except OSError as error:
        raise _unusable(path, error) from None
    except UnicodeDecodeError:
        raise InvalidKey(f"{path}: a key file is UTF-8 text, this is something else") from None


def _unusable(path: Path, error: OSError, remedy: str = "") -> InvalidKey:
    return InvalidKey(f"{path}: {error.strerror or error}{remedy}")
