"""`zq tls`: its files, and TLS connections with them."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from zq.cli.group import main


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "tls"


def tls(*arguments: str | Path) -> list[str]:
    """The lines that a command prints."""
    result = CliRunner().invoke(main, ["tls", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def refused(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, ["tls", *map(str, arguments)])
    assert result.exit_code in (1, 2), result.output
    return result.output


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def verify(out: Path, name: str, purpose: str, *more: str) -> None:
    """Let openssl judge a certificate by its strictest rules."""
    command = ["openssl", "verify", "-x509_strict", "-purpose", purpose, *more]
    files = ["-CAfile", str(out / "ca-cert.pem"), str(out / name)]
    done = subprocess.run([*command, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_init_makes_everything(out: Path) -> None:
    lines = tls("init", "--client", "worker-1", "--client", "worker-2", "--out-dir", out)

    pairs = ["ca", "server", "client-worker-1", "client-worker-2"]
    names = [f"{pair}-{half}.pem" for pair in pairs for half in ("cert", "key")]
    assert lines == [f"wrote: {out / name}" for name in names]
    assert sorted(contents(out)) == sorted(names)
    for name in names:
        mode = (out / name).stat().st_mode & 0o777
        assert mode == (0o600 if name.endswith("-key.pem") else 0o644), name


def test_openssl_accepts_what_is_made_for_its_purpose(out: Path) -> None:
    tls("init", "--san", "queue.example", "--san", "10.1.2.3", "--client", "w", "--out-dir", out)

    verify(out, "server-cert.pem", "sslserver", "-verify_hostname", "queue.example")
    verify(out, "server-cert.pem", "sslserver", "-verify_ip", "10.1.2.3")
    verify(out, "client-w-cert.pem", "sslclient")
    for name, purpose in (("server-cert.pem", "sslclient"), ("client-w-cert.pem", "sslserver")):
        with pytest.raises(AssertionError):
            verify(out, name, purpose)


class Server(threading.Thread):
    """Accepts one TLS connection that must show a certificate, and notes whose it is."""

    def __init__(self, out: Path) -> None:
        super().__init__(daemon=True)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.verify_flags |= ssl.VERIFY_X509_STRICT
        self._context.load_cert_chain(out / "server-cert.pem", out / "server-key.pem")
        self._context.load_verify_locations(out / "ca-cert.pem")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.peer: object = None

    def run(self) -> None:
        connection, _ = self._socket.accept()
        with self._socket, self._context.wrap_socket(connection, server_side=True) as secure:
            self.peer = (secure.getpeercert() or {})["subject"]
            secure.recv(4096)
            secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture
def server(out: Path) -> Iterator[Server]:
    tls("init", "--client", "worker-1", "--out-dir", out)
    server = Server(out)
    server.start()
    yield server
    server.join(60)


def test_pythons_tls_accepts_both_sides(out: Path, server: Server) -> None:
    context = ssl.create_default_context(cafile=out / "ca-cert.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_cert_chain(out / "client-worker-1-cert.pem", out / "client-worker-1-key.pem")

    with (
        socket.create_connection(("127.0.0.1", server.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert secure.recv(4096).startswith(b"HTTP/1.1 200")
    server.join(60)
    assert server.peer == ((("commonName", "worker-1"),),)


def test_curl_accepts_both_sides_by_address(out: Path, server: Server) -> None:
    files = {
        "--cacert": out / "ca-cert.pem",
        "--cert": out / "client-worker-1-cert.pem",
        "--key": out / "client-worker-1-key.pem",
    }
    flags = [str(word) for pair in files.items() for word in pair]

    done = subprocess.run(
        ["curl", "-sS", *flags, f"https://127.0.0.1:{server.port}/"], capture_output=True, text=True
    )

    assert (done.stdout, done.stderr) == ("ok", "")


def test_what_exists_is_skipped_and_still_signs(out: Path) -> None:
    tls("init", "--out-dir", out)
    before = contents(out)

    lines = tls("init", "--client", "w", "--out-dir", out)

    skipped = ["ca-cert.pem", "ca-key.pem", "server-cert.pem", "server-key.pem"]
    assert lines[:4] == [f"skip: {out / name} (already exists)" for name in skipped]
    assert before.items() <= contents(out).items()
    verify(out, "client-w-cert.pem", "sslclient")


def test_overwrite_replaces(out: Path) -> None:
    tls("init", "--out-dir", out)
    before = contents(out)
    (out / "server-key.pem").chmod(0o644)

    tls("init", "--overwrite", "--out-dir", out)

    assert not before.items() & contents(out).items()
    assert (out / "server-key.pem").stat().st_mode & 0o777 == 0o600
    verify(out, "server-cert.pem", "sslserver")


def test_half_of_a_pair_is_neither_completed_nor_taken_for_a_whole(out: Path) -> None:
    tls("ca", "--out-dir", out)
    (out / "ca-key.pem").unlink()

    assert "--overwrite" in refused("ca", "--out-dir", out)
    assert sorted(contents(out)) == ["ca-cert.pem"]


def test_each_command_makes_its_own_files(out: Path, tmp_path: Path) -> None:
    tls("ca", "--cn", "ours", "--ca-days", "30", "--out-dir", out)
    away = ("--ca-cert", out / "ca-cert.pem", "--ca-key", out / "ca-key.pem")
    tls("server-cert", "--san", "a.example", "--cn", "A", *away, "--out-dir", tmp_path / "server")
    tls("client-cert", "--name", "w", "--cn", "W", "--days", "9", *away, "--out-dir", out)

    assert sorted(contents(tmp_path / "server")) == ["server-cert.pem", "server-key.pem"]
    server = certificate(tmp_path / "server" / "server-cert.pem")
    client = certificate(out / "client-w-cert.pem")
    assert certificate(out / "ca-cert.pem").subject.rfc4514_string() == "CN=ours"
    assert server.subject.rfc4514_string() == "CN=A"
    assert client.subject.rfc4514_string() == "CN=W"
    assert (client.not_valid_after_utc - client.not_valid_before_utc).days == 9
    # No certificate outlives who signed it.
    assert server.not_valid_after_utc == certificate(out / "ca-cert.pem").not_valid_after_utc


def test_the_files_lie_in_the_root_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls("ca", "--root-dir", tmp_path / "flag")
    CliRunner().invoke(main, ["--root-dir", str(tmp_path / "before"), "tls", "ca"])
    monkeypatch.setenv("ZQ_ROOT_DIR", str(tmp_path / "variable"))
    tls("ca")

    for root in ("flag", "before", "variable"):
        assert (tmp_path / root / "tls" / "ca-cert.pem").exists(), root


def test_an_authority_of_another_kind_signs_too(out: Path, tmp_path: Path) -> None:
    """RSA, and without the extension that names its key."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
    bare = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "subjectKeyIdentifier=none"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "ca-cert.pem")]
    subprocess.run([*command, *bare, *files], check=True, capture_output=True)
    away = ("--ca-cert", tmp_path / "ca-cert.pem", "--ca-key", tmp_path / "key")

    tls("server-cert", *away, "--out-dir", out)

    done = subprocess.run(
        ["openssl", "verify", "-CAfile", tmp_path / "ca-cert.pem", out / "server-cert.pem"]
    )
    assert done.returncode == 0


def test_what_is_no_authority_is_refused(out: Path, tmp_path: Path) -> None:
    tls("init", "--out-dir", out)
    tls("ca", "--out-dir", tmp_path / "other")
    new = ("--name", "w", "--out-dir", tmp_path / "new")
    other = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"word"),
    )
    (tmp_path / "locked.pem").write_bytes(other)

    for cert, key, says in [
        (out / "ca-cert.pem", tmp_path / "other" / "ca-key.pem", "another certificate"),
        (out / "server-cert.pem", out / "server-key.pem", "may not sign"),
        (out / "ca-key.pem", out / "ca-key.pem", "are not an authority"),
        (out / "ca-cert.pem", tmp_path / "locked.pem", "are not an authority"),
        (out / "nothing.pem", out / "ca-key.pem", "nothing.pem does not exist"),
    ]:
        assert says in refused("client-cert", *new, "--ca-cert", cert, "--ca-key", key)
    assert "zq tls ca" in refused("server-cert", "--out-dir", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["init", "--client", "../w"], "cannot be a key's name"),
        (["client-cert", "--name", "a/b"], "cannot be a key's name"),
        (["init", "--san", "schön.example"], "server-cert.pem"),
        (["init", "--cn", "x" * 65], "server-cert.pem"),
        (["init", "--days", "0"], "--days"),
        (["client-cert"], "--name"),
    ],
)
def test_what_is_wrong_is_said(out: Path, arguments: list[str], says: str) -> None:
    assert says in refused(*arguments, "--out-dir", out)


def test_without_the_package_the_way_to_install_it_is_told(out: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from zq.cli.group import main; main(['tls', 'ca'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=out.parent
    )

    assert done.returncode == 1
    assert "pip install 'zq-queue[tls]'" in done.stderr
    assert list(out.parent.iterdir()) == []


def test_help_shows_examples() -> None:
    assert "  Examples:" in tls("--help")
