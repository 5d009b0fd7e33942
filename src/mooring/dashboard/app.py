"""The pages and what they fetch: which address shows what."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import structs
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
from mooring.dashboard.following import Following
from mooring.dashboard.moments import Moments
from mooring.dashboard.picture import Picture, what_if
from mooring.dashboard.sight import NOTHING, Sight, narrowed, narrowed_explanation, visible_plans
from mooring.dashboard.tables import Table, members_of, pod_rows, quota_changes, some_of, waiting_rows, workload_rows
from mooring.dashboard.watching import Watching
from mooring.errors import InputError, MooringError
from mooring.report.amounts import amount_text, amounts_text, requests_text
from mooring.report.queues.data import QueueStatus
from mooring.report.queues.tree import tree_rows

LARGEST_FORM = 3 << 20
"""Bytes of manifests that may be tried, as an API server takes in one request."""
PROBLEMS = {
    "token": "The API server does not know this token.",
    "rights": "The user of this token may list no pods, nodes or queues.",
    "unknown": "The API server does not answer.",
}
MOST_ROWS = 500
"""Rows of a table on one page; the search finds the others."""


def make_app(watching: Watching, access: Access, decision_log: Path | None = None) -> Starlette:
    """The pages over the latest picture, with what a decision log says of what happened."""
    pages = _Pages(watching, decision_log)
    return Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/nodes", pages.nodes),
            Route("/nodes/{name}", pages.node),
            Route("/queues", pages.queues),
            Route("/pods", pages.pods),
            Route("/pods/{namespace}/{name}", pages.pod),
            Route("/time", pages.time),
            Route("/plans", pages.plans),
            Route("/what-if", pages.what_if, methods=["GET", "POST"]),
            Route("/login", pages.login),
            Route("/data/nodes.json", pages.node_map),
            Route("/data/allocation.json", pages.allocation),
            Route("/events", pages.events),
            Route("/healthz", pages.health),
            Route("/static/look.css", _look),
            Mount("/static", StaticFiles(packages=[("mooring.dashboard", "static")])),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=access), Middleware(GZipMiddleware, minimum_size=2048)],
        exception_handlers={HTTPException: pages.failure, MooringError: pages.failure},
    )


class _Pages:
    """One method per address."""

    def __init__(self, watching: Watching, decision_log: Path | None) -> None:
        self._watching, self._log = watching, decision_log
        self._templates = _make_templates()

    def _picture(self, request: Request) -> Picture:
        return narrowed(self._watching.latest, _sight(request))

    def _draw(self, request: Request, page: str, status_code: int = 200, **facts: Any) -> HTMLResponse:
        watching = self._watching
        html = self._templates.get_template(f"{page}.html").render(
            page=page,
            path=request.url.path,
            picture=watching.latest,
            is_renewed=watching.is_renewed and page != "login",
            fault=watching.fault,
            sight=_sight(request),
            **facts,
        )
        return HTMLResponse(html, status_code=status_code)

    async def overview(self, request: Request) -> Response:
        result = self._picture(request).result
        return self._draw(request, "overview", result=result, workloads=workload_rows(result))

    async def nodes(self, request: Request) -> Response:
        _need(_sight(request).nodes, "nodes")
        nodes = self._watching.nodes
        wanted = request.query_params.get("search", "")
        found = [at for at, name in enumerate(nodes.names) if wanted in name]
        facts: dict[str, Any] = {"nodes": nodes, "search": wanted, "rows": found[:MOST_ROWS], "found": len(found)}
        return self._draw(request, "nodes", map_number=self._map_number(), **facts)

    async def node(self, request: Request) -> Response:
        sight, name = _sight(request), request.path_params["name"]
        _need(sight.nodes, "nodes")
        picture = self._picture(request)
        found = picture.node(name)
        if found is None:
            raise HTTPException(404, f"there is no node {name}")
        found = structs.replace(found, pods=sight.of(found.pods))
        gpus = next((each for each in picture.result.gpus if each.node == name), None)
        devices = next((each for each in picture.result.devices if each.node == name), None)
        return self._draw(request, "node", node=found, gpus=gpus, devices=devices)

    async def queues(self, request: Request) -> Response:
        queues = self._picture(request).queues
        return self._draw(request, "queues", queues=queues, rows=list(tree_rows(queues)))

    async def pods(self, request: Request) -> Response:
        asked = request.query_params
        table = Table.make(
            _sight(request).of(pod_rows(self._picture(request))),
            asked.get("search", ""),
            asked.get("namespace", ""),
            asked.get("state", ""),
            MOST_ROWS,
        )
        return self._draw(request, "pods", table=table)

    async def pod(self, request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        sight = _sight(request)
        if not sight.has(namespace):
            raise HTTPException(404, f"there is no pod {namespace}/{name} that you may see")
        picture = self._watching.latest
        try:
            explanation = await anyio.to_thread.run_sync(partial(picture.explain, f"{namespace}/{name}"))
        except InputError as error:
            raise HTTPException(404, str(error)) from error
        members = members_of(picture, explanation)
        return self._draw(
            request, "pod", explanation=narrowed_explanation(explanation, sight), members=sight.of(members)
        )

    async def time(self, request: Request) -> Response:
        moments = Moments.make(self._watching.history, request.query_params, self._log, _sight(request))
        return self._draw(request, "time", moments=moments)

    async def plans(self, request: Request) -> Response:
        return self._draw(request, "plans", plans=visible_plans(self._watching.plans, _sight(request)))

    async def what_if(self, request: Request) -> Response:
        _need(_sight(request).is_whole, "pods, nodes and queues everywhere, which what-if decides on")
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
            outcome = await anyio.to_thread.run_sync(partial(what_if, self._watching.latest, manifests))
        except MooringError as error:
            return self._draw(request, "what-if", 422, manifests=manifests, outcome=None, problem=str(error))
        facts: dict[str, Any] = {
            "outcome": outcome,
            "waiting": waiting_rows(outcome.result),
            "changes": quota_changes(outcome),
        }
        return self._draw(request, "what-if", manifests=manifests, problem="", **facts)

    async def login(self, request: Request) -> Response:
        return self._draw(request, "login", problem=PROBLEMS.get(request.query_params.get("problem", ""), ""))

    async def node_map(self, request: Request) -> Response:
        _need(_sight(request).nodes, "nodes")
        asked = request.query_params
        if "at" in asked:
            nodes = self._watching.history.at(Moments.time_of(asked, "at", 0.0)).nodes
            return _json({"number": 0, **msgspec.to_builtins(nodes)})
        nodes, number = self._watching.nodes, self._map_number()
        since = asked.get("since", "")
        if isinstance(self._watching, Following) and since.isdecimal():
            rows = self._watching.changed_since(int(since))
            if rows is not None:
                return _json({"number": number, "changed": some_of(nodes, rows)})
        return _json({"number": number, **msgspec.to_builtins(nodes)})

    def _map_number(self) -> int:
        watching = self._watching
        return watching.map_number if isinstance(watching, Following) else watching.latest.number

    async def allocation(self, request: Request) -> Response:
        _need(_sight(request).nodes, "nodes")
        return _json(msgspec.to_builtins(self._watching.allocation.series()))

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._watching.events(), media_type="text/event-stream")

    async def health(self, request: Request) -> Response:
        fault = self._watching.fault
        return Response(fault or "ok", status_code=503 if fault else 200, media_type="text/plain")

    async def failure(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = error.detail if isinstance(error, HTTPException) else str(error)
        return self._draw(request, "failure", status, message=message, status=status)


def _sight(request: Request) -> Sight:
    """How much the guard lets this request see: nothing where it did not say."""
    found: Sight = getattr(request.state, "sight", NOTHING)
    return found


def _need(is_allowed: bool, what: str) -> None:
    if not is_allowed:
        raise HTTPException(403, f"the cluster does not let you list {what}")


def _json(found: Any) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")


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
        "clock": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S"),
        "time": lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "files": lambda source: ", ".join(Path(each).name for each in source.split(", ")),
        "kind": lambda found: "queue" if isinstance(found, QueueStatus) else "cohort",
    }
    environment.filters.update(filters)
    return environment
