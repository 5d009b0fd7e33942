"""ServiceAccount: every pod has an account that exists, and a token of it mounted unless it says otherwise."""

import asyncio
import random

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.status import Object, forbidden

DEFAULT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
LOOKS, LOOK_SECONDS = 10, 0.15
"""How often the account `default` is looked for, and how far apart: in a new namespace it comes a moment later."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MIRROR = "kubernetes.io/config.mirror"


async def wait_for_account(api: Api, namespace: str | None, pod: Object) -> None:
    """Give a namespace that has just come the time to have its account, if a pod is to run as that."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or _account_of(spec) != DEFAULT:
        return
    for _ in range(LOOKS - 1):
        found = api.find("namespaces", None, namespace or "")
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        if api.find("serviceaccounts", namespace, DEFAULT) is not None:
            return
        await asyncio.sleep(LOOK_SECONDS)


def _account_of(spec: Object) -> str:
    return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT)


class ServiceAccounts:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        pod = request.object
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            return
        spec = pod["spec"]
        name = _account_of(spec)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._api.find("serviceaccounts", request.namespace, name)
        if account is None:
            why = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden("", "pods", request.name, why)
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = list(account["imagePullSecrets"])
        if self._mounts(spec, account):
            _mount_token(spec)

    @staticmethod
    def _mounts(spec: Object, account: Object) -> bool:
        for wish in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
            if wish is not None:
                return bool(wish)
        return True


def _mount_token(spec: Object) -> None:
    """Mount the token where containers look for it, unless something is there already."""
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    lacking = [
        one for one in containers if all(mount["mountPath"] != MOUNT_PATH for mount in one.get("volumeMounts") or ())
    ]
    if not lacking:
        return
    # As chance has it elsewhere too: the name means nothing to anybody.
    name = f"kube-api-access-{''.join(random.choices(_LETTERS, k=5))}"
    for container in lacking:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    field = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [field]}},
    ]
    volume = {"name": name, "projected": {"defaultMode": 420, "sources": sources}}
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
