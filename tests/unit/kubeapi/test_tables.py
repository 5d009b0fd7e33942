"""What `kubectl get` shows."""

from typing import Any

import pytest

from mooring.kubeapi.registry import Registry
from mooring.kubeapi.tables import Tables
from mooring.kubeapi.tables.ages import human_duration
from mooring.kubeapi.tables.json_path import JsonPathError, find_all

CREATED = "2026-01-01T00:00:00Z"
NOW = 1_767_225_600.0 + 300
Object = dict[str, Any]


def _row(resource: str, obj: Object, *, wide: bool = False) -> dict[str, Any]:
    obj.setdefault("metadata", {}).update(name="it", creationTimestamp=CREATED)
    table = Tables(lambda: NOW).table(Registry().find(resource), [obj])
    columns = [each["name"] for each in table["columnDefinitions"] if wide or not each["priority"]]
    cells = [
        cell
        for cell, each in zip(table["rows"][0]["cells"], table["columnDefinitions"], strict=True)
        if wide or not each["priority"]
    ]
    return dict(zip(columns, cells, strict=True))


def _container(name: str, state: Object, **more: Any) -> Object:
    return {"name": name, "state": state, **more}


def test_every_resource_has_a_table() -> None:
    tables = Tables(lambda: NOW)

    for resource in Registry():
        table = tables.table(resource, [{"metadata": {"name": "it", "creationTimestamp": CREATED}}])
        assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"]), resource.key


def test_a_running_pod() -> None:
    status = {
        "phase": "Running",
        "podIPs": [{"ip": "127.0.0.9"}],
        "containerStatuses": [
            _container("a", {"running": {}}, ready=True),
            _container(
                "b",
                {"waiting": {"reason": "CrashLoopBackOff"}},
                restartCount=2,
                lastState={"terminated": {"finishedAt": CREATED}},
            ),
        ],
    }
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "n1"}

    assert _row("pods", {"spec": spec, "status": status}, wide=True) == {
        "Name": "it",
        "Ready": "1/2",
        "Status": "CrashLoopBackOff",
        "Restarts": "2 (5m ago)",
        "Age": "5m",
        "IP": "127.0.0.9",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


@pytest.mark.parametrize(
    ("status", "metadata", "shown"),
    [
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            {},
            "SchedulingGated",
        ),
        ({"phase": "Running"}, {"deletionTimestamp": CREATED}, "Terminating"),
        (
            {"phase": "Succeeded", "containerStatuses": [_container("a", {"terminated": {"reason": "Completed"}})]},
            {},
            "Completed",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, {}, "Evicted"),
        ({"phase": "Pending", "initContainerStatuses": [_container("i", {"running": {}})]}, {}, "Init:0/1"),
    ],
)
def test_the_status_of_a_pod(status: Object, metadata: Object, shown: str) -> None:
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}

    assert _row("pods", {"metadata": metadata, "spec": spec, "status": status})["Status"] == shown


def test_a_cordoned_node() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.37.1"}}

    assert _row("nodes", {"spec": {"unschedulable": True}, "status": status}) == {
        "Name": "it",
        "Status": "Ready,SchedulingDisabled",
        "Roles": "<none>",
        "Age": "5m",
        "Version": "v1.37.1",
    }


def test_a_deployment() -> None:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }

    assert _row(
        "deployments.apps", {"spec": spec, "status": {"readyReplicas": 1, "updatedReplicas": 3}}, wide=True
    ) == {
        "Name": "it",
        "Ready": "1/3",
        "Up-to-date": 3,
        "Available": 0,
        "Age": "5m",
        "Containers": "c",
        "Images": "i",
        "Selector": "app=x",
    }


def test_a_job_that_is_done() -> None:
    status = {
        "succeeded": 2,
        "startTime": CREATED,
        "completionTime": "2026-01-01T00:01:30Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    }

    assert _row("jobs.batch", {"spec": {"completions": 2}, "status": status}) == {
        "Name": "it",
        "Status": "Complete",
        "Completions": "2/2",
        "Duration": "90s",
        "Age": "5m",
    }


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (3600, "60m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (90000, "25h"),
        (200000, "2d7h"),
        (8640000, "100d"),
        (94608000, "3y"),
        (-1, "0s"),
        (-5, "<invalid>"),
    ],
)
def test_durations_read_as_those_of_kubectl(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[*].type", ["Ready", "Other"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["x"]),
        (".metadata.labels['app.kubernetes.io/name']", ["x"]),
        (".spec.missing.deeper", []),
    ],
)
def test_paths_of_columns(path: str, found: list[Any]) -> None:
    obj = {
        "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
        "spec": {"replicas": 3},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}]},
    }

    assert find_all(obj, path) == found


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(JsonPathError):
        find_all({}, ".spec[")
