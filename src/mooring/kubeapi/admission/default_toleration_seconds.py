"""DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or cannot be reached."""

from mooring.kubeapi.requests import CREATE, UPDATE, Request

SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds:
    def mutate(self, request: Request) -> None:
        if request.resource.key != "pods" or request.subresource or request.operation not in (CREATE, UPDATE):
            return
        if request.old is not None and request.old["spec"].get("tolerations") == request.object["spec"].get(
            "tolerations"
        ):
            return
        tolerations = list(request.object["spec"].get("tolerations") or ())
        missing = [
            key
            for key in _TAINTS
            if not any(
                one.get("key") in (None, "", key) and one.get("effect") in (None, "", "NoExecute")
                for one in tolerations
            )
        ]
        for key in missing:
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
            tolerations.append(toleration)
        if missing:
            request.object["spec"]["tolerations"] = tolerations
