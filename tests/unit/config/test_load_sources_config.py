"""What is wrong with a LoadSources document is said in one line, with its field."""

from typing import Any

import pytest

from mooring.config.load_sources import LoadSources
from mooring.config.settings import parse_settings
from mooring.errors import ConfigError

ADDRESS = "http://prometheus:9090"
QUERY = {"resource": "cpu", "query": "q"}


def parse(**fields: Any) -> LoadSources:
    document = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "LoadSources"} | fields
    found = parse_settings([document], "file.yaml").load_sources
    assert found is not None
    return found


def test_what_is_not_said_is_as_by_default() -> None:
    found = parse(metricsServer={})

    assert found.metrics_server is not None
    assert (found.metrics_server.interval_seconds, found.metrics_server.timeout_seconds) == (15.0, 10.0)
    assert (found.stale_after_seconds, found.when_stale, found.required) == (180.0, "Keep", False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "file.yaml: expected metricsServer, prometheus, nodeMetric or dcgm, found none of them"),
        ({"apiVersion": "v1", "nodeMetric": True}, 'apiVersion: expected config.mooring.dev/v1alpha1, found "v1"'),
        (
            {"metricServer": {}},
            'metricServer: expected a known key (did you mean metricsServer?), found "metricServer"',
        ),
        (
            {"metricsServer": {"intervalSeconds": 0}},
            "metricsServer.intervalSeconds: expected a number above 0, found 0",
        ),
        (
            {"metricsServer": {"timeoutSeconds": -1}},
            "metricsServer.timeoutSeconds: expected a number above 0, found -1",
        ),
        ({"nodeMetric": True, "staleAfterSeconds": 0}, "staleAfterSeconds: expected a number above 0, found 0"),
        ({"nodeMetric": True, "whenStale": "Zero"}, "whenStale: "),
        ({"prometheus": {"queries": [QUERY]}}, "prometheus.address: expected a value, found none"),
        (
            {"prometheus": {"address": "prometheus:9090", "queries": [QUERY]}},
            'prometheus.address: expected an address such as http://host:9090, found "prometheus:9090"',
        ),
        (
            {"prometheus": {"address": "http://a:b", "queries": [QUERY]}},
            'prometheus.address: expected an address such as http://host:9090, found "http://a:b"',
        ),
        (
            {"prometheus": {"address": ADDRESS}},
            "prometheus.queries: expected at least one query, or gpuQuery, found none",
        ),
        (
            {"prometheus": {"address": ADDRESS, "queries": [QUERY | {"query": " "}]}},
            'prometheus.queries[0].query: expected a text, found ""',
        ),
        (
            {"prometheus": {"address": ADDRESS, "queries": [QUERY], "nodeLabel": ""}},
            'prometheus.nodeLabel: expected the name of a label, found ""',
        ),
        ({"prometheus": {"address": ADDRESS, "queries": [QUERY | {"statistic": "MAX"}]}}, "queries[0].statistic: "),
        ({"dcgm": {"addresses": []}}, "dcgm.addresses: expected at least one address, found none"),
        ({"dcgm": {"addresses": ["gpu-1:9400"]}}, "dcgm.addresses[0]: expected an address such as"),
        (
            {"metricsServer": {}, "nodeMetric": True},
            "nodeMetric: expected one source of the load of nodes, found metricsServer as well",
        ),
        (
            {"prometheus": {"address": ADDRESS, "gpuQuery": "q"}, "dcgm": {"addresses": [ADDRESS]}},
            "dcgm: expected one source of the load of GPUs, found prometheus.gpuQuery as well",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(**fields)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
