"""LoadSources: where a running scheduler reads load from, and what becomes of reports that grow old."""

from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError

KIND = "LoadSources"
API_VERSION = "config.mooring.dev/v1alpha1"
USAGE = "Usage"
"""The statistic of a query that returns amounts: cores of CPU, and whole units of everything else."""


class Polling(ConfigObject, kw_only=True):
    """What all sources have that are asked again and again."""

    interval_seconds: float = 15.0
    """How often the source is asked: metrics-server itself measures every 15 s."""
    timeout_seconds: float = 10.0
    """How long an answer may take."""


class MetricsServer(Polling):
    """metrics.k8s.io, read through the API server."""


class LoadQuery(ConfigObject, kw_only=True):
    """One instant query of Prometheus, with a sample for each node."""

    resource: str
    """cpu, memory or another resource that nodes have."""
    query: str
    statistic: Literal["AVG", "STD", "Latest", "Usage"] = "AVG"
    """What the value is: a percentage of the node's capacity, or with Usage an amount."""


class Prometheus(Polling, kw_only=True):
    """The HTTP API of Prometheus, or of anything that speaks it."""

    address: str
    queries: list[LoadQuery] = msgspec.field(default_factory=list)
    gpu_query: str = ""
    """A query that returns DCGM exporter's metrics, under their own names."""
    node_label: str = "node"
    """The label that has the name of the node, with or without a port."""
    token_file: str = ""
    """A file with a bearer token; it is read again for each request."""
    ca_file: str = ""
    """A file with the certificate authority of an https address."""


class DcgmExporters(Polling, kw_only=True):
    """DCGM exporters that are scraped directly."""

    addresses: list[str]


class LoadSources(ConfigObject):
    """The document as a whole."""

    api_version: str = API_VERSION
    kind: str = KIND
    metrics_server: MetricsServer | None = None
    prometheus: Prometheus | None = None
    node_metric: bool = False
    """Whether Koordinator's NodeMetric objects are watched."""
    dcgm: DcgmExporters | None = None
    stale_after_seconds: float = 180.0
    """The age at which readiness says that a source is stale: three times koordlet's usual interval."""
    when_stale: Literal["Keep", "Forget"] = "Keep"
    """Keep: an old report stays, and each plugin goes by its age. Forget: the node counts as never reported."""
    required: bool = False
    """Whether Mooring does not start, and is not ready, without an answer of every source."""


def parse_load_sources(document: Any, source: str) -> LoadSources:
    """Give a document of the kind LoadSources its type; raise ConfigError for what is wrong with it."""
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    found = convert(document, LoadSources, source)
    polled = (("metricsServer", found.metrics_server), ("prometheus", found.prometheus), ("dcgm", found.dcgm))
    numbers = [("staleAfterSeconds", found.stale_after_seconds)]
    for name, polling in polled:
        if polling is not None:
            numbers += [
                (f"{name}.intervalSeconds", polling.interval_seconds),
                (f"{name}.timeoutSeconds", polling.timeout_seconds),
            ]
    for field, value in numbers:
        if value <= 0:
            raise ConfigError(source, field, expected="a number above 0", found=f"{value:g}")
    if found.prometheus is not None:
        _check_prometheus(found.prometheus, source)
    if found.dcgm is not None:
        if not found.dcgm.addresses:
            raise ConfigError(source, "dcgm.addresses", expected="at least one address", found="none")
        for index, address in enumerate(found.dcgm.addresses):
            _check_address(address, source, f"dcgm.addresses[{index}]")
    _check_number_of_sources(found, source)
    return found


def _check_prometheus(found: Prometheus, source: str) -> None:
    _check_address(found.address, source, "prometheus.address")
    if not found.queries and not found.gpu_query:
        raise ConfigError(source, "prometheus.queries", expected="at least one query, or gpuQuery", found="none")
    for index, query in enumerate(found.queries):
        for name, text in (("resource", query.resource), ("query", query.query)):
            if not text.strip():
                raise ConfigError(source, f"prometheus.queries[{index}].{name}", expected="a text", found='""')
    if not found.node_label:
        raise ConfigError(source, "prometheus.nodeLabel", expected="the name of a label", found='""')


def _check_number_of_sources(found: LoadSources, source: str) -> None:
    """Two sources of the same figures would replace each other's reports in turn."""
    prometheus = found.prometheus
    nodes = {
        "metricsServer": found.metrics_server is not None,
        "prometheus.queries": prometheus is not None and bool(prometheus.queries),
        "nodeMetric": found.node_metric,
    }
    gpus = {
        "prometheus.gpuQuery": prometheus is not None and bool(prometheus.gpu_query),
        "dcgm": found.dcgm is not None,
    }
    for about, sources in (("nodes", nodes), ("GPUs", gpus)):
        given = [name for name, is_given in sources.items() if is_given]
        if len(given) > 1:
            expected = f"one source of the load of {about}"
            raise ConfigError(source, given[1], expected=expected, found=f"{given[0]} as well")
    if not any((*nodes.values(), *gpus.values())):
        expected = "metricsServer, prometheus, nodeMetric or dcgm"
        raise ConfigError(source, "", expected=expected, found="none of them")


def _check_address(address: str, source: str, field: str) -> None:
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigError(source, field, expected="an address such as http://host:9090", found=f'"{address}"')
