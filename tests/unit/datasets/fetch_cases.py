"""A server of files, and a data set of one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import threading
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.fetch import fetch

# Several chunks of the reader, and not compressible, so that packed copies are long enough to be cut.
CONTENT = random.Random(1).randbytes(200_000)


OTHER = random.Random(2).randbytes(len(CONTENT))


NAME = "toy.data"


Respond = Callable[[BaseHTTPRequestHandler, int], None]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def toy(*urls: str, access: str = "public", names: tuple[str, ...] = (NAME,)) -> Dataset:
    files_ = tuple(File(name, len(CONTENT), sha256(CONTENT), urls) for name in names)
    return Dataset(
        name="toy",
        title="Toy",
        access=access,
        stand_in=False,
        licence="CC0",
        citation="nobody",
        origin="https://example.org/toy",
        rev=1,
        files=files_,
        public={},
        settings={},
    )


class Server:
    """Answers each path with the function registered for it, which gets the handler and the number of the request."""

    def __init__(self) -> None:
        self.answers: dict[str, Respond] = {}
        self.hits: dict[str, int] = {}
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.hits[self.path] = outer.hits.get(self.path, 0) + 1
                # A client that gives up closes the connection while the answer is under way.
                with contextlib.suppress(ConnectionError):
                    outer.answers[self.path](self, outer.hits[self.path])

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def add(self, path: str, respond: Respond) -> str:
        self.answers[path] = respond
        return f"http://127.0.0.1:{self.http.server_port}{path}"

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def body(content: bytes, declared: int | None = None) -> Respond:
    def respond(handler: BaseHTTPRequestHandler, request: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if declared is None else declared))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def status(code: int) -> Respond:
    return lambda handler, request: handler.send_error(code)


def get(dataset: Dataset, raw: Path, mirrors: tuple[Path, ...] = (), **settings: float) -> list[Path]:
    return fetch(dataset, raw=raw, folders=mirrors, **{"timeout": 5.0, "retries": 2, **settings})


def left(raw: Path) -> list[str]:
    return sorted(path.name for path in (raw / "toy").iterdir())


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()
