"""The reference of the metrics, from the registry that `/metrics` is served from."""

from md_tables import code, plain, table
from prometheus_client.metrics import MetricWrapperBase

from mooring.observe.metrics import Metrics

INTRODUCTION = """# Reference: metrics

This page is generated from the registry that `mooring run` serves at `/metrics`.
[Running on a cluster](../running-live.md#metrics) explains them. A histogram has the series `_bucket`, `_sum` and
`_count`. The metrics of the process (`process_*`) are those of every Prometheus client.

"""
FAMILIES = {
    "scheduler_": "With the names of kube-scheduler",
    "kueue_": "With the names of Kueue",
    "mooring_": "Of Mooring",
    "": "Of the client and of the process",
}


def metrics() -> dict[str, MetricWrapperBase]:
    """Every metric by the name that a query uses."""
    collectors = [each for each in vars(Metrics()).values() if isinstance(each, MetricWrapperBase)]
    return {_query_name(each): each for each in collectors}


def page() -> str:
    """Return the page."""
    remaining = dict(sorted(metrics().items()))
    sections = []
    for prefix, title in FAMILIES.items():
        names = [name for name in remaining if name.startswith(prefix)]
        rows = [_row(name, remaining.pop(name)) for name in names]
        sections.append(f"## {title}\n\n" + table(("name", "type", "labels", "meaning"), rows))
    return INTRODUCTION + "\n".join(sections)


def _row(name: str, metric: MetricWrapperBase) -> tuple[str, str, str, str]:
    labels = ", ".join(code(label) for label in metric._labelnames)
    return code(name), metric._type, labels, plain(metric._documentation)


def _query_name(metric: MetricWrapperBase) -> str:
    suffix = {"counter": "_total", "info": "_info"}.get(metric._type, "")
    return metric._name + suffix
