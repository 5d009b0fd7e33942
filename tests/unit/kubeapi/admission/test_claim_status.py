"""Parts of a claim's status have writers of their own."""

from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.auth.user import NODE_NAME, User
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

Object = dict[str, Any]
CLAIMS, RBAC = "resourceclaims.resource.k8s.io", "rbac.authorization.k8s.io"
ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]
    },
}
DEVICES = [{"driver": "gpu.example.com", "pool": "a", "device": "gpu-0", "data": {"firmware": "2"}}]


@pytest.fixture
def api() -> Api:
    api = Api(Store())
    api.create("namespaces", {"metadata": {"name": "default"}})
    api.create(CLAIMS, {"metadata": {"name": "one"}, "spec": {}}, "default")
    turn_on(api, Rbac(api))
    return api


def allow(api: Api, account: str, resource: str, verbs: list[str], names: list[str] | None = None) -> None:
    rule = {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs, "resourceNames": names or []}
    api.create(f"clusterroles.{RBAC}", {"metadata": {"name": account}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": account}
    binding = {"metadata": {"name": account}, "roleRef": role, "subjects": [subject]}
    api.create(f"clusterrolebindings.{RBAC}", binding)
    api.store.flush()


def account(name: str, node: str = "") -> User:
    return User(f"system:serviceaccount:default:{name}", extra={NODE_NAME: [node]} if node else {})


def write(api: Api, user: User, **status: Any) -> None:
    claim = api.get(CLAIMS, "default", "one")
    claim["status"] = {**claim.get("status", {}), **status}
    api.update(CLAIMS, claim, subresource="status", user=user)


def test_only_who_may_bind_claims_writes_their_allocation(api: Api) -> None:
    allow(api, "scheduler", "resourceclaims/binding", ["update"])

    with pytest.raises(ApiError, match='cannot update resource "resourceclaims/binding"'):
        write(api, account("stranger"), allocation=ALLOCATION)
    write(api, account("scheduler"), allocation=ALLOCATION)

    assert api.get(CLAIMS, "default", "one")["status"] == {"allocation": ALLOCATION}


def test_a_driver_writes_of_its_own_devices_on_its_own_node(api: Api) -> None:
    write(api, User("admin", ("system:masters",)), allocation=ALLOCATION)
    allow(api, "driver", "resourceclaims/driver", ["associated-node:update"], ["gpu.example.com"])

    with pytest.raises(ApiError, match='cannot arbitrary-node:update resource "resourceclaims/driver"'):
        write(api, account("driver", "node-b"), devices=DEVICES)
    with pytest.raises(ApiError, match="cannot associated-node:update"):
        write(api, account("driver", "node-a"), devices=[{**DEVICES[0], "driver": "other.example.com"}])
    write(api, account("driver", "node-a"), devices=DEVICES)

    assert api.get(CLAIMS, "default", "one")["status"]["devices"] == DEVICES
