"""Quotas hold whatever is created, and counting leaves no trace."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.defaults import default_pod_spec
from mooring.model.loading.manifests import build_manifests
from mooring.model.quotas import pod_usage
from mooring.model.quotas.amounts import Amount, Notation, read_amount
from mooring.model.quotas.namespace_quotas import NamespaceQuotas
from mooring.model.quotas.objects import CoreResourceQuota
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import Amounts, pod_requests

Document = dict[str, Any]

CPU = st.sampled_from(["0", "100m", "500m", "1", "1.5", "2"])
MEMORY = st.sampled_from(["0", "100M", "512Mi", "1Gi", "1.5Gi", "1e9"])
GPUS = st.integers(0, 2).map(str)
TRACKED = {"requests.cpu": "cpu", "requests.memory": "memory", "requests.nvidia.com/gpu": "nvidia.com/gpu"}


@st.composite
def amounts(draw: st.DrawFn, *, gpus: bool = True) -> dict[str, str]:
    given: dict[str, st.SearchStrategy[str]] = {
        "cpu": CPU,
        "memory": MEMORY,
        **({"nvidia.com/gpu": GPUS} if gpus else {}),
    }
    return {name: draw(strategy) for name, strategy in given.items() if draw(st.booleans())}


@st.composite
def containers(draw: st.DrawFn, name: str, *, restarts: bool = False) -> Document:
    """A container whose limits, if it has any, are its requests: that is valid whatever is drawn."""
    kind = draw(st.sampled_from(["requests", "limits"]))
    drawn = draw(amounts())
    resources: Document = {kind: drawn}
    if "nvidia.com/gpu" in drawn:
        resources["limits"] = {"nvidia.com/gpu": drawn["nvidia.com/gpu"], **resources.get("limits", {})}
    made: Document = {"name": name, "resources": resources}
    if restarts and draw(st.booleans()):
        made["restartPolicy"] = "Always"
    return made


@st.composite
def specs(draw: st.DrawFn) -> Document:
    spec: Document = {"containers": [draw(containers(f"c-{i}")) for i in range(draw(st.integers(1, 3)))]}
    inits = [draw(containers(f"i-{i}", restarts=True)) for i in range(draw(st.integers(0, 3)))]
    spec["initContainers"] = inits
    if draw(st.booleans()):
        spec["overhead"] = draw(amounts(gpus=False))
    if draw(st.booleans()):
        spec["resources"] = {"requests": draw(amounts(gpus=False))}
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = 60
    return spec


@st.composite
def quotas(draw: st.DrawFn, name: str) -> Document:
    """A quota on some of the resources; with scopes it has none that they forbid."""
    hard = {"pods": str(draw(st.integers(0, 6)))}
    scopes = draw(st.lists(st.sampled_from(["Terminating", "NotBestEffort"]), unique=True, max_size=2))
    for resource, strategy in (("requests.cpu", CPU), ("requests.memory", MEMORY), ("requests.nvidia.com/gpu", GPUS)):
        if draw(st.booleans()):
            hard[resource] = draw(strategy)
    spec = {"hard": hard, "scopes": scopes}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def pods_of(drawn: list[Document]) -> list[Document]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{i}"}, "spec": spec}
        for i, spec in enumerate(drawn)
    ]


def typed(spec: Document, name: str = "p") -> Pod:
    made = Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=msgspec.convert(spec, PodSpec))
    default_pod_spec(made.spec)
    return made


def is_about(quota: Document, pod: Pod) -> bool:
    """By the definition of the two scopes that are drawn, said again in other words."""
    scopes = quota["spec"]["scopes"]
    if "Terminating" in scopes and pod.spec.active_deadline_seconds is None:
        return False
    stated = [pod.spec.resources] if pod.spec.resources and pod.spec.resources.requests else None
    given = stated or [c.resources for c in (*pod.spec.containers, *(pod.spec.init_containers or ()))]
    asks = any(
        parse_quantity(text) > 0
        for resources in given
        if resources
        for amounts in (resources.requests, resources.limits)
        for name, text in (amounts or {}).items()
        if name in ("cpu", "memory")
    )
    return asks or "NotBestEffort" not in scopes


def taken(quota: Document, pods: list[Pod]) -> dict[str, int]:
    """What pods take of a quota, by the sums that the scheduler itself goes by."""
    about = [pod for pod in pods if is_about(quota, pod)]
    requests: list[Amounts] = [pod_requests(pod) for pod in about]
    total = {name: sum(found.get(TRACKED[name], 0) for found in requests) for name in TRACKED}
    return {**total, "pods": len(about) * 10**9}


several_quotas = st.integers(0, 2).flatmap(lambda number: st.tuples(*(quotas(f"q-{i}") for i in range(number))))


@given(drawn=st.lists(specs(), max_size=6), rules=several_quotas)
def test_no_more_is_admitted_than_a_quota_allows(drawn: list[Document], rules: tuple[Document, ...]) -> None:
    manifests = build_manifests([*rules, *pods_of(drawn)])

    for quota in rules:
        used = taken(quota, manifests.pods)
        for name, text in quota["spec"]["hard"].items():
            assert used[name] <= parse_quantity(text), (quota["metadata"]["name"], name)


@given(drawn=st.lists(specs(), max_size=6), rule=quotas("q"))
def test_a_pod_is_refused_only_if_it_would_exceed_or_does_not_say_what_it_takes(
    drawn: list[Document], rule: Document
) -> None:
    manifests = build_manifests([rule, *pods_of(drawn)])

    admitted: list[Pod] = []
    by_name = {pod.metadata.name: pod for pod in manifests.pods}
    refused = {refusal.found.metadata.name: refusal for refusal in manifests.refused}
    for i in range(len(drawn)):
        name = f"p-{i}"
        if name in by_name:
            admitted.append(by_name[name])
            continue
        would_take = taken(rule, [*admitted, refused[name].found])
        exceeds = any(would_take[key] > parse_quantity(text) for key, text in rule["spec"]["hard"].items())
        assert exceeds or refused[name].reason.startswith("failed quota: q: must specify ")


@given(drawn=st.lists(specs(), max_size=6), rule=quotas("q"), order=st.randoms(use_true_random=False))
def test_charging_and_releasing_in_any_order_leaves_what_was_there(
    drawn: list[Document], rule: Document, order: Any
) -> None:
    found = NamespaceQuotas([msgspec.convert(rule, CoreResourceQuota)])
    stays = typed({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}, "stays")
    found.charge(stays)
    before = {name: amount.nanos for name, amount in found.used()["q"].items()}
    pods = [typed(spec, f"p-{i}") for i, spec in enumerate(drawn)]

    for pod in pods:
        found.charge(pod)
    order.shuffle(pods)
    for pod in pods:
        found.release(pod.key)

    assert {name: amount.nanos for name, amount in found.used()["q"].items()} == before


@given(spec=specs())
def test_quotas_and_scheduling_add_up_requests_alike(spec: Document) -> None:
    pod = typed(spec)

    by_quota = {name: amount.nanos for name, amount in pod_usage.pod_requests(pod.spec).items()}

    assert by_quota == pod_requests(pod)


@given(nanos=st.integers(0, 2**63 - 1).map(lambda number: number * 10**6), notation=st.sampled_from(Notation))
def test_what_is_printed_is_read_as_the_same_amount(nanos: int, notation: Notation) -> None:
    assert read_amount(str(Amount(nanos, notation))).nanos == nanos
