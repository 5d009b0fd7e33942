"""The pages and what they fetch: which address shows what."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mooring.dashboard.access import Access
from mooring.dashboard.picture import Picture, what_if
from mooring.dashboard.tables import Table, members_of, pod_rows, quota_changes, waiting_rows, workload_rows
from mooring.dashboard.watching import Watching
from mooring.errors import InputError, MooringError
from mooring.report.amounts import amount_text, amounts_text, requests_text
from mooring.report.queues.data import QueueStatus
from mooring.report.queues.tree import tree_rows

LARGEST_FORM = 3 << 20
"""Bytes of manifests that may be tried, as an API server takes in one request."""
MOST_ROWS = 500
"""Rows of a table on one page; the search finds the others."""


def make_app(watching: Watching, access: Access) -> Starlette:
    """The pages over the latest picture."""
    pages = _Pages(watching)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching.start()
        yield
        await watching.stop()

    return Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/nodes", pages.nodes),
            Route("/nodes/{name}", pages.node),
            Route("/queues", pages.queues),
            Route("/pods", pages.pods),
            Route("/pods/{namespace}/{name}", pages.pod),
            Route("/what-if", pages.what_if, methods=["GET", "POST"]),
            Route("/data/nodes.json", pages.node_map),
            Route("/events", pages.events),
            Route("/healthz", pages.health),
            Route("/static/look.css", _look),
            Mount("/static", StaticFiles(packages=[("mooring.dashboard", "static")])),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=access), Middleware(GZipMiddleware, minimum_size=2048)],
        exception_handlers={HTTPException: pages.failure, MooringError: pages.failure},
        lifespan=lifespan,
    )


class _Pages:
    """One method per address."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._templates = _make_templates()

    @property
    def _picture(self) -> Picture:
        return self._watching.latest

    def _draw(self, request: Request, page: str, status_code: int = 200, **facts: Any) -> HTMLResponse:
        watching = self._watching
        html = self._templates.get_template(f"{page}.html").render(
            page=page,
            path=request.url.path,
            picture=watching.latest,
            is_renewed=watching.is_renewed,
            fault=watching.fault,
            **facts,
        )
        return HTMLResponse(html, status_code=status_code)

    async def overview(self, request: Request) -> Response:
        result = self._picture.result
        return self._draw(request, "overview", result=result, workloads=workload_rows(result))

    async def nodes(self, request: Request) -> Response:
        nodes = self._picture.nodes
        wanted = request.query_params.get("search", "")
        found = [at for at, name in enumerate(nodes.names) if wanted in name]
        return self._draw(request, "nodes", nodes=nodes, search=wanted, rows=found[:MOST_ROWS], found=len(found))

    async def node(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._picture.node(name)
        if found is None:
            raise HTTPException(404, f"there is no node {name}")
        gpus = next((each for each in self._picture.result.gpus if each.node == name), None)
        devices = next((each for each in self._picture.result.devices if each.node == name), None)
        return self._draw(request, "node", node=found, gpus=gpus, devices=devices)

    async def queues(self, request: Request) -> Response:
        queues = self._picture.queues
        return self._draw(request, "queues", queues=queues, rows=list(tree_rows(queues)))

    async def pods(self, request: Request) -> Response:
        asked = request.query_params
        table = Table.make(
            pod_rows(self._picture),
            asked.get("search", ""),
            asked.get("namespace", ""),
            asked.get("state", ""),
            MOST_ROWS,
        )
        return self._draw(request, "pods", table=table)

    async def pod(self, request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        picture = self._picture
        try:
            explanation = await anyio.to_thread.run_sync(partial(picture.explain, f"{namespace}/{name}"))
        except InputError as error:
            raise HTTPException(404, str(error)) from error
        return self._draw(request, "pod", explanation=explanation, members=members_of(picture, explanation))

    async def what_if(self, request: Request) -> Response:
        if request.method != "POST":
            return self._draw(request, "what-if", manifests="", outcome=None, problem="")
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LARGEST_FORM:
            raise HTTPException(413, f"expected manifests of at most {LARGEST_FORM >> 20} MiB")
        form = await request.form(max_files=1, max_fields=2)
        text, file = form.get("manifests", ""), form.get("file")
        manifests = text if isinstance(text, str) else ""
        if isinstance(file, UploadFile) and file.filename:
            manifests = (await file.read()).decode("utf-8", errors="replace")
        try:
            outcome = await anyio.to_thread.run_sync(partial(what_if, self._picture, manifests))
        except MooringError as error:
            return self._draw(request, "what-if", 422, manifests=manifests, outcome=None, problem=str(error))
        facts: dict[str, Any] = {
            "outcome": outcome,
            "waiting": waiting_rows(outcome.result),
            "changes": quota_changes(outcome),
        }
        return self._draw(request, "what-if", manifests=manifests, problem="", **facts)

    async def node_map(self, request: Request) -> Response:
        data = {"number": self._picture.number, **msgspec.to_builtins(self._picture.nodes)}
        return Response(msgspec.json.encode(data), media_type="application/json")

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._watching.events(), media_type="text/event-stream")

    async def health(self, request: Request) -> Response:
        fault = self._watching.fault
        return Response(fault or "ok", status_code=503 if fault else 200, media_type="text/plain")

    async def failure(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = error.detail if isinstance(error, HTTPException) else str(error)
        return self._draw(request, "failure", status, message=message, status=status)


async def _look(_: Request) -> Response:
    """The look of the simulator's report: one for both."""
    css = files("mooring.report.simulation.page").joinpath("page.css").read_text(encoding="utf-8")
    return Response(css, media_type="text/css")


def _make_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("mooring.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Callable[..., str]] = {
        "amount": lambda number, resource: amount_text(resource, number),
        "amounts": lambda amounts: amounts_text(amounts, "-"),
        "requests": requests_text,
        "time": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "files": lambda source: ", ".join(Path(each).name for each in source.split(", ")),
        "kind": lambda found: "queue" if isinstance(found, QueueStatus) else "cohort",
    }
    environment.filters.update(filters)
    return environment
