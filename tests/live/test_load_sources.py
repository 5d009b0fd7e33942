"""`mooring run` with sources of load: what they measure decides, and what becomes of it when they fail."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import Program, free_port, until
from kube import Kube, node, pod
from load_servers import LoadServer
from test_failures import get

from mooring.model.api.meta import timestamp_text

DCGM = (Path(__file__).parents[2] / "examples/load/dcgm.prom").read_text()
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
USAGE = [
    {"resource": "cpu", "statistic": "Usage", "query": "cores"},
    {"resource": "memory", "statistic": "Usage", "query": "bytes"},
]


def start(
    cluster: Kube, sources: dict[str, Any], plugin: str = "LoadAwareScheduling", args: dict[str, Any] | None = None
) -> tuple[Program, str]:
    """`mooring run` with a load-aware plugin that outweighs all others, and where its health is served."""
    profile: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": [{"name": plugin, "weight": 100}]}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    kinds = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "LoadSources"}
    config = cluster.directory / "config.yaml"
    config.write_text(yaml.safe_dump_all([scheduler, kinds | sources]))
    address = f"127.0.0.1:{free_port()}"
    return cluster.run(f"--config={config}", f"--health-address={address}"), address


def waits(cluster: Kube, name: str, reason: str) -> bool:
    return any(why == "FailedScheduling" and reason in note for why, note in cluster.events(name))


def readiness(address: str) -> tuple[int, list[str]]:
    code, text = get(f"{address}/readyz")
    return code, [line for line in text.splitlines() if "load-" in line]


def busy(*names: str, idle: tuple[str, ...] = ()) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Nodes of 4 cores of which nearly all are used, and others."""
    cores = [({"node": name}, 3.9) for name in names] + [({"node": name}, 0.1) for name in idle]
    return {"cores": cores, "bytes": [(labels, 1e9) for labels, _ in cores]}


def test_pods_go_where_prometheus_measures_little(cluster: Kube) -> None:
    cluster.create(node("a", cpu=4), node("b", cpu=4))
    levels = {"used": [({"instance": "a:9100"}, 90.0), ({"instance": "b:9100"}, 10.0)]}
    with LoadServer(levels) as prometheus:
        queries = [{"resource": "cpu", "statistic": "Latest", "query": "used"}]
        sources = {"prometheus": {"address": prometheus.address, "queries": queries, "nodeLabel": "instance"}}
        _, address = start(cluster, sources, "LoadVariationRiskBalancing")
        cluster.create(*(pod(f"p{i}") for i in range(4)))
        assert set(cluster.wait_until_bound([f"p{i}" for i in range(4)]).values()) == {"b"}
        assert readiness(address) == (200, ["[+]load-prometheus ok"])
        text = get(f"{address}/metrics")[1]
        assert 'mooring_load_reports{source="prometheus",state="fresh"} 2.0' in text
        assert 'mooring_load_source_failures{source="prometheus"} 0.0' in text
        assert 'mooring_load_age_seconds{source="prometheus"}' in text


def test_a_pod_comes_in_when_the_load_falls(cluster: Kube) -> None:
    """A source is asked again after `intervalSeconds`, and what it says then brings pods back that wait."""
    cluster.create(node("a", cpu=4))
    with LoadServer(busy("a")) as prometheus:
        source = {"address": prometheus.address, "queries": USAGE, "intervalSeconds": 0.2}
        start(cluster, {"prometheus": source})
        cluster.create(pod("p"))
        until(lambda: waits(cluster, "p", "node(s) cpu usage exceed threshold"), 60)
        prometheus.samples = busy(idle=("a",))
        assert cluster.wait_until_bound(["p"]) == {"p": "a"}
        assert prometheus.requests > 2


def test_a_source_that_does_not_answer_is_said_once_and_asked_again(cluster: Kube) -> None:
    cluster.create(node("a", cpu=4), node("b", cpu=4))
    with LoadServer(busy("a", idle=("b",))) as prometheus:
        prometheus.is_hanging = True
        source = {"address": prometheus.address, "queries": USAGE, "intervalSeconds": 0.2, "timeoutSeconds": 0.5}
        scheduler, address = start(cluster, {"prometheus": source})
        said = (
            f"load source prometheus ({prometheus.address}): no answer within 0.5 s; the load of its nodes is unknown"
        )
        scheduler.wait_until_it_says(said)
        cluster.create(pod("blind"))
        cluster.wait_until_bound(["blind"])  # nobody waits for a source
        until(lambda: prometheus.requests >= 3 * len(USAGE), 60)
        code, lines = readiness(address)
        assert code == 200
        assert len(lines) == 1 and lines[0].startswith("[~]load-prometheus fails since"), lines
        assert scheduler.log.read_text().count("load source prometheus") == 1
        prometheus.is_hanging = False
        until(lambda: readiness(address)[1] == ["[+]load-prometheus ok"], 60)
        cluster.create(pod("seeing"))
        assert cluster.wait_until_bound(["seeing"]) == {"seeing": "b"}


def test_a_required_source_has_to_answer_at_the_start_and_later(cluster: Kube) -> None:
    cluster.create(node("a", cpu=4))
    with LoadServer(busy(idle=("a",))) as prometheus:
        prometheus.code = 503
        source = {"address": prometheus.address, "queries": USAGE, "intervalSeconds": 0.2}
        sources = {"prometheus": source, "required": True}
        scheduler, _ = start(cluster, sources)
        until(lambda: not scheduler.is_running, 60)
        last = scheduler.log.read_text().splitlines()[-1]
        start_of_line, _, rest = last.partition(": queries[")  # whichever of them is answered first
        assert start_of_line.endswith(f"({prometheus.address})")
        assert rest.partition("]")[2] == ": expected the code 200, found 503 down for a test"
        prometheus.code = 200
        _, address = start(cluster, sources)
        until(lambda: readiness(address) == (200, ["[+]load-prometheus ok"]), 60)
        prometheus.code = 503
        kept = "its last reports are kept and grow old"
        until(lambda: readiness(address)[0] == 503 and kept in "".join(readiness(address)[1]), 60)


@pytest.mark.parametrize(("policy", "places"), [("Keep", False), ("Forget", True)])
def test_old_reports_count_as_configured(cluster: Kube, policy: str, places: bool) -> None:
    """The source goes away while its only node is full. Kept, the report is too old for the plugin, which refuses the
    node. Forgotten, the node is one without a report, which the plugin lets pass. It never counts as idle."""
    cluster.create(node("a", cpu=4))
    with LoadServer(busy("a")) as prometheus:
        source = {"address": prometheus.address, "queries": USAGE, "intervalSeconds": 0.2}
        sources = {"prometheus": source, "whenStale": policy, "staleAfterSeconds": 2}
        _, address = start(cluster, sources, args={"nodeMetricExpirationSeconds": 2})
        cluster.create(pod("early"))
        until(lambda: waits(cluster, "early", "node(s) cpu usage exceed threshold"), 60)
        prometheus.code = 500
        if places:
            assert cluster.wait_until_bound(["early"]) == {"early": "a"}
            assert 'mooring_load_reports{source="prometheus",state="stale"} 0.0' in get(f"{address}/metrics")[1]
        else:
            stale = 'mooring_load_reports{source="prometheus",state="stale"} 1.0'
            until(lambda: stale in get(f"{address}/metrics")[1], 60)
            cluster.create(pod("late", cpu="200m"))
            until(lambda: waits(cluster, "late", "node(s) nodeMetric expired"), 60)


def test_a_source_that_answers_with_old_figures_is_not_ready(cluster: Kube) -> None:
    cluster.create(node("a", cpu=4))
    with LoadServer(busy("a")) as prometheus:
        prometheus.age_seconds = 600
        sources = {"prometheus": {"address": prometheus.address, "queries": USAGE}, "staleAfterSeconds": 300}
        _, address = start(cluster, sources)
        until(lambda: "all 1 reports are stale, the newest is 60" in "".join(readiness(address)[1]), 60)
        cluster.create(pod("p"))
        until(lambda: waits(cluster, "p", "node(s) nodeMetric expired"), 60)


def test_prometheus_behind_tls_and_a_token(cluster: Kube, tmp_path: Path) -> None:
    cluster.create(node("a", cpu=4))
    with LoadServer(busy("a"), tls_in=tmp_path) as prometheus:
        prometheus.token = "secret"
        (tmp_path / "token").write_text("secret\n")
        source = {"address": prometheus.address, "queries": USAGE}
        without, address = start(cluster, {"prometheus": source})
        without.wait_until_it_says("certificate verify failed")
        until(lambda: "".join(readiness(address)[1]).startswith("[~]load-prometheus fails"), 60)
        without.kill()
        with_ca, _ = start(cluster, {"prometheus": source | {"caFile": str(tmp_path / "ca.pem")}})
        with_ca.wait_until_it_says("expected the code 200, found 401 Unauthorized")
        with_ca.kill()
        files = {"caFile": str(tmp_path / "ca.pem"), "tokenFile": str(tmp_path / "token")}
        _, address = start(cluster, {"prometheus": source | files})
        until(lambda: readiness(address)[1] == ["[+]load-prometheus ok"], 60)
        cluster.create(pod("p"))
        until(lambda: waits(cluster, "p", "node(s) cpu usage exceed threshold"), 60)


def gpu_pod(name: str) -> Any:
    made = pod(name)
    made["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    made["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    return made


def gpu_nodes(cluster: Kube) -> None:
    """Those of the example: the GPUs of gpu-a are hot."""
    amounts: Any = {"nvidia.com/gpu": "8"}
    cluster.create(*(node(name, **amounts) for name in ("gpu-a", "gpu-b")))


def test_gpus_are_read_from_dcgm_exporters(cluster: Kube) -> None:
    gpu_nodes(cluster)
    with LoadServer(page=DCGM) as one, LoadServer() as two:
        two.code = 404
        addresses = [f"{one.address}/metrics", f"{two.address}/metrics"]
        exporters = {"addresses": addresses, "intervalSeconds": 0.2, "timeoutSeconds": 5}
        scheduler, address = start(cluster, {"dcgm": exporters}, "GpuLoad")
        scheduler.wait_until_it_says(f"{two.address}/metrics: expected the code 200, found 404")
        cluster.create(*(gpu_pod(f"p{i}") for i in range(3)))
        assert set(cluster.wait_until_bound(["p0", "p1", "p2"]).values()) == {"gpu-b"}
        two.code, two.page = 200, DCGM.replace("gpu-a", "gpu-c")
        until(lambda: readiness(address)[1] == ["[+]load-dcgm ok"], 60)
        requests = one.requests
        until(lambda: one.requests > requests + 2, 60)


def test_an_exporter_that_is_slow_is_given_up(cluster: Kube) -> None:
    gpu_nodes(cluster)
    with LoadServer(page=DCGM) as one, LoadServer() as two:
        two.is_hanging = True
        addresses = [f"{one.address}/metrics", f"{two.address}/metrics"]
        scheduler, _ = start(cluster, {"dcgm": {"addresses": addresses, "timeoutSeconds": 0.5}}, "GpuLoad")
        scheduler.wait_until_it_says(f"{two.address}/metrics: no answer within 0.5 s")
        cluster.create(gpu_pod("p"))
        assert cluster.wait_until_bound(["p"]) == {"p": "gpu-b"}


def test_gpus_are_read_through_prometheus(cluster: Kube) -> None:
    gpu_nodes(cluster)
    series = [
        ({"__name__": "DCGM_FI_DEV_GPU_TEMP", "Hostname": name, "UUID": f"{name}-0"}, degrees)
        for name, degrees in (("gpu-a", 95.0), ("gpu-b", 40.0))
    ]
    with LoadServer({"gpus": series}) as prometheus:
        start(cluster, {"prometheus": {"address": prometheus.address, "gpuQuery": "gpus"}}, "GpuLoad")
        cluster.create(*(gpu_pod(f"p{i}") for i in range(3)))
        assert set(cluster.wait_until_bound(["p0", "p1", "p2"]).values()) == {"gpu-b"}


def node_metric(name: str, cores: str, at: float) -> Any:
    usage = {"resources": {"cpu": cores, "memory": "1Gi"}}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "spec": {},
        "status": {"updateTime": timestamp_text(at), "nodeMetric": {"nodeUsage": usage}},
    }


def define_node_metric(cluster: Kube) -> None:
    names = {"plural": "nodemetrics", "singular": "nodemetric", "kind": "NodeMetric", "listKind": "NodeMetricList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodemetrics.slo.koordinator.sh"},
        "spec": {"group": "slo.koordinator.sh", "names": names, "scope": "Cluster", "versions": [version]},
    }
    cluster.call("POST", CRDS, definition)


def test_node_metrics_of_koordinator_are_watched(cluster: Kube) -> None:
    cluster.create(node("a", cpu=4))
    scheduler, address = start(cluster, {"nodeMetric": True})
    scheduler.wait_until_it_says("nodemetrics.slo.koordinator.sh cannot be followed: 404")
    until(lambda: "".join(readiness(address)[1]).startswith("[~]load-nodeMetric fails since"), 60)
    define_node_metric(cluster)
    try:
        until(lambda: readiness(address)[1] == ["[~]load-nodeMetric no node is reported"], 60)
        cluster.call("POST", METRICS, node_metric("a", "3900m", time.time()))
        until(lambda: readiness(address)[1] == ["[+]load-nodeMetric ok"], 60)
        cluster.create(pod("p"))
        until(lambda: waits(cluster, "p", "node(s) cpu usage exceed threshold"), 60)
        change = node_metric("a", "100m", time.time())
        cluster.call("PATCH", f"{METRICS}/a", change, content_type="application/merge-patch+json")
        assert cluster.wait_until_bound(["p"]) == {"p": "a"}
        cluster.call("DELETE", f"{METRICS}/a")
        until(lambda: readiness(address)[1] == ["[~]load-nodeMetric no node is reported"], 60)
    finally:
        cluster.call("DELETE", f"{CRDS}/nodemetrics.slo.koordinator.sh")


def simulated(name: str, cores: str) -> Any:
    """A node of 4 cores that says itself how many of them are used."""
    made = node(name, cpu=4)
    made["metadata"]["annotations"] = {"mooring.dev/simulated": "true", "mooring.dev/usage-cpu": cores}
    return made


def test_metrics_server_is_read_through_the_api_server(cluster: Kube, request: pytest.FixtureRequest) -> None:
    cluster.create(simulated("a", "3900m"), simulated("b", "100m"))
    scheduler, address = start(cluster, {"metricsServer": {"intervalSeconds": 0.2}})
    if request.node.callspec.params["cluster"] == "real":  # which has no metrics-server
        scheduler.wait_until_it_says("/apis/metrics.k8s.io/v1beta1): 404 ")
        return
    cluster.create(*(pod(f"p{i}") for i in range(3)))
    assert set(cluster.wait_until_bound(["p0", "p1", "p2"]).values()) == {"b"}
    cluster.create(pod("big", nodeSelector={"kubernetes.io/hostname": "a"}))
    until(lambda: waits(cluster, "big", "node(s) cpu usage exceed threshold"), 60)
    idle = {"metadata": {"annotations": {"mooring.dev/usage-cpu": "0"}}}
    cluster.call("PATCH", "/api/v1/nodes/a", idle, content_type="application/merge-patch+json")
    assert cluster.wait_until_bound(["big"]) == {"big": "a"}
    assert readiness(address)[1] == ["[+]load-metricsServer ok"]


def test_metrics_server_has_a_time_to_answer(cluster: Kube) -> None:
    cluster.create(simulated("a", "3900m"))
    scheduler, address = start(cluster, {"metricsServer": {"timeoutSeconds": 0.000001}})
    scheduler.wait_until_it_says("/apis/metrics.k8s.io/v1beta1): no answer within 1e-06 s; the load of its nodes is")
    cluster.create(pod("p"))
    assert cluster.wait_until_bound(["p"]) == {"p": "a"}
    assert 'mooring_load_source_failures{source="metricsServer"} 1.0' in get(f"{address}/metrics")[1]


def test_a_new_configuration_has_other_sources(cluster: Kube) -> None:
    """By SIGHUP: what the sources before reported is forgotten, and what the new ones do counts at once."""
    cluster.create(node("a", cpu=4))
    with LoadServer(busy("a")) as full, LoadServer(busy(idle=("a",))) as idle:
        scheduler, address = start(cluster, {"prometheus": {"address": full.address, "queries": USAGE}})
        cluster.create(pod("p"))
        until(lambda: waits(cluster, "p", "node(s) cpu usage exceed threshold"), 60)
        config = cluster.directory / "config.yaml"
        config.write_text(config.read_text().replace(full.address, idle.address))
        scheduler.send(signal.SIGHUP)
        assert cluster.wait_until_bound(["p"]) == {"p": "a"}
        assert idle.requests
        config.write_text(config.read_text().partition("---")[0])
        scheduler.send(signal.SIGHUP)
        until(lambda: readiness(address) == (200, []), 60)
