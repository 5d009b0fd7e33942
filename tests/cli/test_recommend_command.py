"""`mooring recommend`: what is recommended, what would come of it, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli.main import run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "rightsizing"
MIB = 1 << 20


def node(name: str = "node-a", cpu: str = "8", memory: str = "32Gi", **labels: str) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


def pod(name: str, node_name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [owner]},
        "spec": {"nodeName": node_name, "containers": [{"name": "app", "image": "app", **container}], **spec},
        "status": {"phase": "Running", "startTime": "2026-03-01T00:00:00Z"},
    }


def asks(cpu: str = "1", memory: str = "2Gi") -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}}


def autoscaler(mode: str = "InPlaceOrRecreate", policy: dict[str, Any] | None = None, **update: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
        "updatePolicy": {"updateMode": mode, **update},
    }
    if policy is not None:
        spec["resourcePolicy"] = {"containerPolicies": [policy]}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def usage(name: str = "web-0", cpu: str = "200m", memory: str = "400Mi", minutes: int = 600) -> list[dict[str, Any]]:
    return [
        {
            "kind": "PodMetrics",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "timestamp": f"2026-03-02T{minute // 60:02}:{minute % 60:02}:00Z",
            "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}],
        }
        for minute in range(0, minutes, 10)
    ]


class Recommend:
    """Runs the command over documents."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capfd = folder, capfd

    def write(self, documents: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> None:
        (self.folder / "cluster.yaml").write_text(yaml.safe_dump_all(documents))
        (self.folder / "usage.yaml").write_text(yaml.safe_dump_all(metrics))

    def run(self, *options: str) -> tuple[int, str, str]:
        files = ("-f", str(self.folder / "cluster.yaml"), "--metrics", str(self.folder / "usage.yaml"))
        code = run(["recommend", *files, "--quiet", *options])
        said = self._capfd.readouterr()
        return code, said.out, said.err

    def advice(self, documents: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> dict[str, Any]:
        self.write(documents, metrics)
        code, out, err = self.run("-o", "json")
        assert (code, err) == (0, "")
        (found,) = json.loads(out)["autoscalers"]
        assert isinstance(found, dict)
        return found

    def refusal(self, documents: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> str:
        self.write(documents, metrics)
        code, out, err = self.run()
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err.replace(f"{self.folder}/", "")


@pytest.fixture
def recommend(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Recommend:
    return Recommend(tmp_path, capfd)


def changes(advice: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(found["pod"], found["change"], found["reason"]) for found in advice["pods"]]


def two_pods(**container: Any) -> list[dict[str, Any]]:
    return [pod("web-0", "node-a", container or asks()), pod("web-1", "node-a", container or asks())]


# What is recommended.


def test_a_container_gets_the_percentile_of_its_usage_and_a_margin(recommend: Recommend) -> None:
    advice = recommend.advice([node(), *two_pods(), autoscaler()], usage(memory="600Mi"))

    (container,) = advice["containers"]
    assert (advice["samples"], container["samples"], container["requests"]) == (
        60,
        60,
        {"cpu": 1, "memory": 2048 * MIB},
    )
    # 200m is in the bucket that ends at 215m, 600Mi in the one that ends at 664388475 bytes; both get 15 percent more.
    assert container["uncappedTarget"] == container["target"]
    assert container["target"] == {"cpu": 0.247, "memory": 664388475 + 99658271}
    assert container["lowerBound"]["cpu"] <= container["target"]["cpu"] <= container["upperBound"]["cpu"]


def test_a_policy_holds_targets_between_its_bounds_and_the_uncapped_target_shows(recommend: Recommend) -> None:
    policy = {"containerName": "app", "minAllowed": {"cpu": "500m"}, "maxAllowed": {"memory": "300Mi"}}

    (container,) = recommend.advice([node(), *two_pods(), autoscaler(policy=policy)], usage())["containers"]

    assert container["target"] == {"cpu": 0.5, "memory": 300 * MIB}
    assert container["uncappedTarget"]["cpu"] < 0.5 and container["uncappedTarget"]["memory"] > 300 * MIB
    assert container["why"].endswith("cpu raised to minAllowed; memory cut to maxAllowed")


def test_a_limit_range_holds_targets_down(recommend: Recommend) -> None:
    limits = [{"type": "Container", "max": {"memory": "1Gi"}}]
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    pods = two_pods(resources={"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}})

    advice = recommend.advice([node(), limit_range, *pods, autoscaler()], usage(memory="3Gi"))

    (container,) = advice["containers"]
    assert container["target"]["memory"] == 1024 * MIB
    assert "memory cut by a LimitRange or its limit" in container["why"]


def test_no_target_is_larger_than_the_largest_node_that_the_pod_may_use(recommend: Recommend) -> None:
    nodes = [node(pool="small"), node("node-big", "64", "256Gi", pool="big")]
    selector = {"nodeSelector": {"pool": "small"}}
    pods = [pod("web-0", "node-a", asks(), **selector), pod("web-1", "node-a", asks(), **selector)]

    (container,) = recommend.advice([*nodes, *pods, autoscaler()], usage(memory="100Gi"))["containers"]

    assert container["target"]["memory"] == 32 * 1024 * MIB
    assert container["uncappedTarget"]["memory"] > 100 * 1024 * MIB
    assert container["why"].endswith("memory cut by node node-a")


def test_an_infeasible_recommendation_says_so(recommend: Recommend) -> None:
    policy = {"containerName": "*", "minAllowed": {"memory": "64Gi"}}

    advice = recommend.advice([node(), *two_pods(), autoscaler(policy=policy)], usage())

    reason = "infeasible: minAllowed of container app is 68719476736 of memory, and the pod would be larger than node-a"
    assert advice["problem"] == reason
    assert changes(advice) == [("web-0", "nothing", reason), ("web-1", "nothing", reason)]


def test_a_container_that_was_killed_for_want_of_memory_gets_more(recommend: Recommend) -> None:
    killed = pod("web-0", "node-a", asks(memory="1Gi"))
    terminated = {"reason": "OOMKilled", "startedAt": "2026-03-01T00:00:00Z", "finishedAt": "2026-03-02T05:00:00Z"}
    killed["status"]["containerStatuses"] = [{"name": "app", "lastState": {"terminated": terminated}}]
    documents = [node(), killed, pod("web-1", "node-a", asks(memory="1Gi")), autoscaler()]

    (container,) = recommend.advice(documents, usage(memory="900Mi"))["containers"]

    assert container["target"]["memory"] > 1.2 * 1024 * MIB
    assert "killed once for want of memory" in container["why"]


def test_pods_that_are_gone_count_by_their_labels(recommend: Recommend) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    spec = {"replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": template}
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}

    advice = recommend.advice([node(), target, *two_pods(), autoscaler()], usage("web-of-yesterday"))

    assert advice["samples"] == 60


def test_without_samples_nothing_is_recommended(recommend: Recommend) -> None:
    advice = recommend.advice([node(), *two_pods(), autoscaler()], usage("other")[:0])

    assert advice["problem"] == "nothing was measured of its containers, or all of them are in mode Off"
    assert {found[1] for found in changes(advice)} == {"nothing"}


# What would change.


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("InPlaceOrRecreate", ("in place", "node node-a has room")),
        ("InPlace", ("in place", "node node-a has room")),
        ("Recreate", ("evicted", "update mode Recreate: it is made anew with the recommendation")),
        ("Auto", ("evicted", "update mode Recreate: it is made anew with the recommendation")),
        ("Initial", ("nothing", "update mode Initial: pods get it when they are created")),
        ("Off", ("nothing", "update mode Off: it is recommended, not applied")),
    ],
)
def test_the_update_mode_decides_what_becomes_of_a_pod(
    mode: str, expected: tuple[str, str], recommend: Recommend
) -> None:
    advice = recommend.advice([node(), *two_pods(), autoscaler(mode)], usage())

    assert changes(advice)[0] == ("web-0", *expected)


def test_a_pod_shows_what_its_containers_have_and_would_have(recommend: Recommend) -> None:
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2"}}

    advice = recommend.advice([node(), *two_pods(resources=resources), autoscaler()], usage())

    (container,) = advice["pods"][0]["containers"]
    assert container == {
        "container": "app",
        "requests": {"cpu": 1, "memory": 2048 * MIB},
        "newRequests": advice["containers"][0]["target"],
        "limits": {"cpu": 2},
        "newLimits": {"cpu": 2 * advice["containers"][0]["target"]["cpu"]},
    }


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("InPlace", ("nothing", "deferred in place: node node-a has no room for it now")),
        ("InPlaceOrRecreate", ("evicted", "deferred in place: node node-a has no room for it now")),
    ],
)
def test_a_pod_grows_in_place_only_where_its_node_has_room(
    mode: str, expected: tuple[str, str], recommend: Recommend
) -> None:
    documents = [node(memory="8Gi"), *two_pods(**asks(memory="3Gi")), autoscaler(mode)]

    assert changes(recommend.advice(documents, usage(memory="5Gi")))[0] == ("web-0", *expected)


def test_room_that_one_pod_frees_serves_the_next(recommend: Recommend) -> None:
    # Both fit only together: each resize counts at once for the pods after it.
    documents = [node(memory="7Gi"), *two_pods(**asks(memory="3Gi")), autoscaler("InPlace", minReplicas=1)]

    advice = recommend.advice(documents, usage(memory="2500Mi"))

    assert [found[1] for found in changes(advice)] == ["in place", "nothing"]
    assert changes(advice)[1][2].startswith("it follows")


def test_a_pod_whose_service_class_would_change_is_not_resized_in_place(recommend: Recommend) -> None:
    policy = {"containerName": "app", "controlledValues": "RequestsOnly"}
    resources = {"cpu": "1", "memory": "2Gi"}
    pods = two_pods(resources={"requests": resources, "limits": resources})

    advice = recommend.advice([node(), *pods, autoscaler("InPlace", policy)], usage())

    reason = "it would have another quality-of-service class, which a running pod cannot change"
    assert changes(advice)[0] == ("web-0", "nothing", reason)


def test_a_disruption_budget_and_a_minimum_of_replicas_keep_pods(recommend: Recommend) -> None:
    selector = {"matchLabels": {"app": "web"}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    budget["spec"] = {"minAvailable": 2, "selector": selector}

    kept = recommend.advice([node(), *two_pods(), budget, autoscaler("Recreate")], usage())
    alone = recommend.advice([node(), two_pods()[0], autoscaler("Recreate")], usage())

    assert changes(kept)[0] == ("web-0", "nothing", "it is not evicted, as a disruption budget has none to give")
    assert changes(alone)[0] == ("web-0", "nothing", "its controller has 1 of at least 2 pods (minReplicas)")


# What is refused.


def test_a_minimum_above_the_maximum_is_refused(recommend: Recommend) -> None:
    policy = {"containerName": "app", "minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}}

    assert recommend.refusal([node(), *two_pods(), autoscaler(policy=policy)], usage()) == (
        "error: cluster.yaml: document 4 (VerticalPodAutoscaler default/web): "
        'spec.resourcePolicy.containerPolicies[0].minAllowed.cpu: expected at most maxAllowed, which is "1", '
        'found "2"\n'
    )


def test_a_policy_for_a_container_that_is_not_there_is_refused(recommend: Recommend) -> None:
    policy = {"containerName": "ap", "mode": "Off"}

    assert recommend.refusal([node(), *two_pods(), autoscaler(policy=policy)], usage()) == (
        "error: cluster.yaml: document 4 (VerticalPodAutoscaler default/web): "
        "spec.resourcePolicy.containerPolicies[0].containerName: expected a container of StatefulSet/web (app), or *, "
        'found "ap"\n'
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda metrics: metrics[2]["containers"][0]["usage"].update(cpu="-5m"),
            'document 3: containers[0].usage.cpu: expected a quantity of at least 0, found "-5m"',
        ),
        (
            lambda metrics: metrics[2]["containers"][0]["usage"].pop("memory"),
            "document 3: containers[0].usage: expected cpu and memory, found no memory",
        ),
        (
            lambda metrics: metrics[2].pop("timestamp"),
            "document 3: timestamp: expected a time such as 2026-03-02T12:00:00Z, found none",
        ),
        (
            lambda metrics: metrics[2]["containers"][0]["usage"].update(cpu="many"),
            'document 3: containers[0].usage.cpu: expected a quantity, found "many"',
        ),
    ],
)
def test_a_bad_sample_is_refused(spoil: Any, said: str, recommend: Recommend) -> None:
    metrics = usage()
    spoil(metrics)

    assert recommend.refusal([node(), *two_pods(), autoscaler()], metrics) == f"error: usage.yaml: {said}\n"


def test_a_history_with_a_gap_is_refused_unless_it_is_allowed(recommend: Recommend) -> None:
    metrics = [one for one in usage() if not one["timestamp"].startswith(("2026-03-02T03", "2026-03-02T04"))]

    said = recommend.refusal([node(), *two_pods(), autoscaler()], metrics)

    where = "usage.yaml: pod default/web-0, container app"
    found = "none from 2026-03-02T02:50:00Z to 2026-03-02T05:00:00Z (--allow-gaps takes it as it is)"
    assert said == f"error: {where}: expected a sample every 600s, found {found}\n"
    assert recommend.run("--allow-gaps")[0] == 0


def test_without_metrics_nothing_is_recommended(recommend: Recommend, capfd: pytest.CaptureFixture[str]) -> None:
    recommend.write([node()], [])

    assert run(["recommend", "-f", str(recommend.folder / "cluster.yaml")]) == 2
    assert capfd.readouterr().err.startswith("error: Missing option '--metrics'")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"updatePolicy": {"updateMode": "Sometimes"}}, "spec.updatePolicy.updateMode: expected one of Off, Initial"),
        ({"updatePolicy": {"minReplicas": 0}}, "spec.updatePolicy.minReplicas: expected at least 1, found 0"),
        ({"targetRef": None}, "spec.targetRef: expected the kind and the name of a controller, found none"),
        (
            {"resourcePolicy": {"containerPolicies": [{"containerName": "app"}, {"containerName": "app"}]}},
            'containerPolicies[1].containerName: expected a container without another policy, found "app"',
        ),
        (
            {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "minAllowed": {"cpu": "0.1m"}}]}},
            'containerPolicies[0].minAllowed.cpu: expected whole millicores, found "0.1m"',
        ),
    ],
)
def test_an_autoscaler_that_its_admission_would_refuse_is_refused(
    change: dict[str, Any], said: str, recommend: Recommend
) -> None:
    vpa = autoscaler()
    vpa["spec"].update(change)
    vpa["spec"] = {name: value for name, value in vpa["spec"].items() if value is not None}

    assert said in recommend.refusal([node(), *two_pods(), vpa], usage())


# The example, and the table.


def test_the_example_shows_each_kind_of_change(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    files = ["-f", str(EXAMPLE / "cluster.yaml"), "--metrics", str(EXAMPLE / "usage.yaml")]

    assert run(["recommend", *files, "--quiet"]) == 0

    said = capfd.readouterr().out
    assert all(f"  {change}  " in said for change in ("in place", "evicted", "nothing"))
    assert "memory cut by node" in said and "memory cut to maxAllowed" in said


def test_a_resource_by_which_another_autoscaler_scales_is_not_recommended(recommend: Recommend) -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
    horizontal = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "more", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [metric]},
    }

    advice = recommend.advice([node(), *two_pods(), autoscaler(), horizontal], usage())

    assert advice["problem"] == "requests are left as they are of cpu, by which HorizontalPodAutoscaler more scales"
    assert list(advice["containers"][0]["target"]) == ["memory"]
