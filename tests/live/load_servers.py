"""Servers of load for tests: the query API of Prometheus, or a page of metrics, with answers that a test sets."""

import json
import ssl
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mooring.kubeapi.auth.certificates import issue_server, make_authority

Samples = dict[str, list[tuple[dict[str, str], float]]]
"""By query: the labels and the value of each series."""


class LoadServer:
    """Answers until it is stopped; it counts who asks, and can be slow or fail."""

    def __init__(self, samples: Samples | None = None, page: str = "", tls_in: Path | None = None) -> None:
        self.samples, self.page = samples if samples is not None else {}, page
        self.age_seconds = 0.0
        """How old samples are said to be."""
        self.code = 200
        self.token = ""
        """The bearer token that requests have to have."""
        self.is_hanging = False
        self.requests = 0
        self._end = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        scheme = "http"
        if tls_in is not None:
            scheme = "https"
            authority = make_authority()
            pair = issue_server(authority, ("127.0.0.1",))
            (tls_in / "ca.pem").write_bytes(authority.certificate)
            (tls_in / "server.pem").write_bytes(pair.certificate + pair.key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls_in / "server.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.address = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "LoadServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, token: str) -> tuple[int, bytes]:
        self.requests += 1
        if self.is_hanging:
            self._end.wait()
        if self.code != 200:
            return self.code, b"down for a test"
        if self.token and token != f"Bearer {self.token}":
            return 401, b"Unauthorized"
        parts = urlsplit(path)
        if parts.path == "/metrics":
            return 200, self.page.encode()
        query = parse_qs(parts.query).get("query", [""])[0]
        at = time.time() - self.age_seconds
        result = [{"metric": labels, "value": [at, str(value)]} for labels, value in self.samples.get(query, ())]
        data = {"resultType": "vector", "result": result}
        return 200, json.dumps({"status": "success", "data": data}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, body = server.answer(self.path, self.headers.get("Authorization", ""))
                with suppress(ConnectionError):  # a client that was kept waiting has gone
                    self.send_response(code)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler
