"""The requests of the programs that copy go to the server that was named, and nowhere else."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from zq.moving.servers import MovingError, MovingServer


class Leading(BaseHTTPRequestHandler):
    """Leads every request on to another path, and notes what came."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Noting)
        self.server.asked.append(self.path)
        self.send_response(302)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


class Noting(HTTPServer):
    asked: list[str]


@pytest.fixture
def leading() -> Iterator[Noting]:
    server = Noting(("127.0.0.1", 0), Leading)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_redirect_is_told_and_not_followed_with_the_token(leading: Noting) -> None:
    source = MovingServer(f"http://127.0.0.1:{leading.server_port}", "", "secret")
    with pytest.raises(MovingError, match="302 it leads to /elsewhere"):
        source.ask("GET", "/jobs")
    assert leading.asked == ["/jobs"]


def test_a_file_is_no_server(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text('{"jobs": []}')
    for url in (tmp_path.as_uri(), str(tmp_path), "ftp://127.0.0.1"):
        with pytest.raises(MovingError, match="begin it with http"):
            MovingServer(url, "", None).ask("GET", "/jobs")


def test_a_next_page_cannot_make_another_host_of_the_address(leading: Noting) -> None:
    source = MovingServer("http://127.0.0.1", "", "secret")
    with pytest.raises(MovingError, match="no path"):
        source.ask("GET", f"@127.0.0.1:{leading.server_port}/jobs")
    assert leading.asked == []
