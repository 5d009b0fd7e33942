"""Which volume of a pod is not there yet: a kubelet starts nothing before all are."""

from typing import Any

from mooring.kubeapi.api import Api

Object = dict[str, Any]


def missing_volume(api: Api, pod: Object) -> str:
    """The name of a volume that cannot be mounted yet, or nothing."""
    namespace = pod["metadata"]["namespace"]
    for volume in pod["spec"].get("volumes") or ():
        if not _is_there(api, namespace, pod, volume):
            return str(volume["name"])
    return ""


def _is_there(api: Api, namespace: str, pod: Object, volume: Object) -> bool:
    if claim := volume.get("persistentVolumeClaim"):
        return _is_bound(api, namespace, claim["claimName"])
    if "ephemeral" in volume:
        return _is_bound(api, namespace, f"{pod['metadata']['name']}-{volume['name']}")
    sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    for source in sources:
        for field, resource, name in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
            found = source.get(field)
            if found is None or found.get("optional"):
                continue
            named = found.get(name) or found.get("name")
            if named and api.find(resource, namespace, named) is None:
                return False
    return True


def _is_bound(api: Api, namespace: str, name: str) -> bool:
    claim = api.find("persistentvolumeclaims", namespace, name)
    return claim is not None and (claim.get("status") or {}).get("phase") == "Bound"
