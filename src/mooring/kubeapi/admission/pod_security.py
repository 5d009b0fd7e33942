"""PodSecurity: namespaces that enforce `baseline` or `restricted` refuse pods that reach for the host.

What is checked is what needs no knowledge of the container runtime: the host's namespaces, paths and ports, privileges,
capabilities, and for `restricted` that a pod gives up what it does not need.
"""

from collections.abc import Iterator

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, UPDATE, Request
from mooring.kubeapi.status import Object, forbidden

ENFORCE = "pod-security.kubernetes.io/enforce"
ENFORCE_VERSION = "pod-security.kubernetes.io/enforce-version"
_CAPABILITIES = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
_RESTRICTED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


class PodSecurity:
    def __init__(self, api: Api) -> None:
        self._api = api

    def validate(self, request: Request) -> None:
        if request.resource.key != "pods" or request.subresource or request.operation not in (CREATE, UPDATE):
            return
        namespace = self._api.find("namespaces", None, request.namespace) or {"metadata": {}}
        labels = namespace["metadata"].get("labels") or {}
        level = labels.get(ENFORCE, "privileged")
        if level not in ("baseline", "restricted"):
            return
        if request.old is not None and request.old["spec"] == request.object["spec"]:
            return
        complaints = list(_baseline(request.object["spec"]))
        if level == "restricted":
            complaints += _restricted(request.object["spec"])
        if complaints:
            version = labels.get(ENFORCE_VERSION, "latest")
            why = f'violates PodSecurity "{level}:{version}": {", ".join(complaints)}'
            raise forbidden("", "pods", request.name, why)


def _containers(spec: Object) -> list[Object]:
    return [*spec["containers"], *(spec.get("initContainers") or ()), *(spec.get("ephemeralContainers") or ())]


def _named(containers: list[Object]) -> str:
    names = ", ".join(f'"{one["name"]}"' for one in containers)
    return f"container {names}" if len(containers) == 1 else f"containers {names}"


def _security(container: Object) -> Object:
    return container.get("securityContext") or {}


def _baseline(spec: Object) -> Iterator[str]:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    if shared:
        yield f"host namespaces ({', '.join(shared)})"
    containers = _containers(spec)
    privileged = [one for one in containers if _security(one).get("privileged")]
    if privileged:
        yield f"privileged ({_named(privileged)} must not set securityContext.privileged=true)"
    greedy = [
        one for one in containers if set((_security(one).get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
    ]
    if greedy:
        added = sorted({cap for one in greedy for cap in _security(one)["capabilities"]["add"]} - _CAPABILITIES)
        shown = ", ".join(f'"{cap}"' for cap in added)
        where = "securityContext.capabilities.add"
        yield f"non-default capabilities ({_named(greedy)} must not include {shown} in {where})"
    paths = [one["name"] for one in spec.get("volumes") or () if "hostPath" in one]
    if paths:
        shown = ", ".join(f'"{name}"' for name in paths)
        yield f"hostPath volumes (volume{'s' if len(paths) > 1 else ''} {shown})"
    ports = [one for one in containers if any(port.get("hostPort") for port in one.get("ports") or ())]
    if ports:
        numbers = sorted({port["hostPort"] for one in ports for port in one["ports"] if port.get("hostPort")})
        yield f"hostPort ({_named(ports)} uses hostPort {', '.join(map(str, numbers))})"


def _restricted(spec: Object) -> Iterator[str]:
    containers, whole = _containers(spec), spec.get("securityContext") or {}
    escalating = [one for one in containers if _security(one).get("allowPrivilegeEscalation") is not False]
    if escalating:
        wanted = "securityContext.allowPrivilegeEscalation=false"
        yield f"allowPrivilegeEscalation != false ({_named(escalating)} must set {wanted})"
    keeping = [one for one in containers if "ALL" not in ((_security(one).get("capabilities") or {}).get("drop") or ())]
    if keeping:
        yield f'unrestricted capabilities ({_named(keeping)} must set securityContext.capabilities.drop=["ALL"])'
    if not whole.get("runAsNonRoot"):
        rooted = [one for one in containers if not _security(one).get("runAsNonRoot")]
        if rooted:
            yield f"runAsNonRoot != true (pod or {_named(rooted)} must set securityContext.runAsNonRoot=true)"
    if not whole.get("seccompProfile"):
        open_ = [one for one in containers if not _security(one).get("seccompProfile")]
        if open_:
            wanted = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
            yield f"seccompProfile (pod or {_named(open_)} must set {wanted})"
    odd = [one["name"] for one in spec.get("volumes") or () if not _RESTRICTED_VOLUMES & one.keys()]
    if odd:
        yield f"restricted volume types ({', '.join(odd)})"
