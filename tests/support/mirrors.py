"""A web server on a real socket; each file can imitate a fault of real servers."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class File:
    """The server's answer for one file, with its faults."""

    body: bytes
    status: int = 200
    content_type: str = "application/octet-stream"
    etag: str | None = '"1"'
    ranges: bool = True  # answers Range requests
    believes: bool = False  # sends a range even if If-Range names another version
    shift: int = 0  # bytes between the range that it sends and the range asked for
    length: bool = True  # sends Content-Length
    cuts: list[int] = field(default_factory=list)  # bytes after which answer i breaks off
    silent: float = 0  # seconds before the body
    pause: float = 0  # seconds after each tenth of the body
    redirect: str | None = None
    chunked: bool = False


class Mirror:
    """The files of a server by path, its address, and the requests that it received."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, File] = {}
        self.asked: list[tuple[str, str | None, str | None]] = []  # path, Range, If-Range

    def give(self, path: str, body: bytes, **how) -> str:
        """Put a file on the server; returns its address."""
        self.files[path] = File(body, **how)
        return f"{self.address}/{path}"

    @property
    def ranges(self) -> list[str | None]:
        """The Range headers of the requests, in order."""
        return [asked[1] for asked in self.asked]


@contextmanager
def serving() -> Iterator[Mirror]:
    """Run a server in a thread during the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
            mirror.asked.append((path, asked, condition))
            answer(self, mirror.files.get(path) or File(b"no such file", 404), asked, condition)

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None: ...  # clients that hang up

    with Server(("127.0.0.1", 0), Handler) as server:
        mirror = Mirror(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield mirror
        server.shutdown()
        thread.join()


def answer(
    handler: BaseHTTPRequestHandler, file: File, asked: str | None, condition: str | None
) -> None:
    handler.close_connection = True
    if file.redirect:
        handler.send_response(302)
        handler.send_header("Location", file.redirect)
        handler.end_headers()
        return
    begin, status = 0, file.status
    fresh = file.believes or condition in (None, file.etag)
    if asked and file.ranges and status == 200 and fresh:
        begin = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) + file.shift
        status = 206 if begin < len(file.body) else 416
    body = file.body[begin:] if status != 416 else b""
    handler.send_response(status)
    # Most servers send an HTML page with status 416.
    handler.send_header("Content-Type", "text/html" if status == 416 else file.content_type)
    if file.etag:
        handler.send_header("ETag", file.etag)
    if status == 206:
        handler.send_header("Content-Range", f"bytes {begin}-{len(file.body) - 1}/{len(file.body)}")
    if status == 416:
        handler.send_header("Content-Range", f"bytes */{len(file.body)}")
    if file.chunked:
        handler.send_header("Transfer-Encoding", "chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    elif file.length:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    time.sleep(file.silent)
    upto = file.cuts.pop(0) if file.cuts else len(body)
    step = max(1, upto // 10) if file.pause else max(1, upto)
    for i in range(0, upto, step):
        handler.wfile.write(body[i : min(i + step, upto)])
        time.sleep(file.pause)


def closed_port() -> int:
    """A port of this machine on which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
