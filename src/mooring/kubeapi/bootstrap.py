"""What a new cluster has before anyone does anything: namespaces, classes, roles, its own service."""

from mooring.kubeapi.admission.priority import system_priority_classes
from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.volumes import default_storage_class
from mooring.kubeapi.status import Object

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
SERVICE_ADDRESS = "10.0.0.1"
RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_AGGREGATE = f"{RBAC}/aggregate-to-"
_WRITTEN = (
    ("", "configmaps events persistentvolumeclaims pods replicationcontrollers replicationcontrollers/scale"),
    ("", "secrets serviceaccounts services services/proxy"),
    ("", "pods/attach pods/exec pods/portforward pods/proxy"),
    ("apps", "daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs jobs"),
    ("coordination.k8s.io", "leases"),
    ("networking.k8s.io", "ingresses networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)
"""What the role `edit` writes: no status, and nothing that others act on without looking, such as Endpoints."""
_READ_BY_EDIT = (("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),)
_READ_BY_ALL = (
    ("", "bindings configmaps endpoints events limitranges namespaces namespaces/status persistentvolumeclaims"),
    ("", "persistentvolumeclaims/status pods pods/log pods/status replicationcontrollers replicationcontrollers/scale"),
    ("", "replicationcontrollers/status resourcequotas resourcequotas/status serviceaccounts services services/status"),
    ("apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status"),
    ("apps", "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"),
    ("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    ("batch", "cronjobs cronjobs/status jobs jobs/status"),
    ("coordination.k8s.io", "leases"),
    ("discovery.k8s.io", "endpointslices"),
    ("networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    ("policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    ("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)
_KEPT = "rbac.authorization.kubernetes.io/autoupdate"
"""An annotation: with the value "false" a role of the cluster's own stays as it is when the cluster starts."""


def bootstrap(api: Api, port: int) -> None:
    """Create what is not there yet; what is there stays as it is."""
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        namespace = {"metadata": {"name": name, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}}
        _ensure(api, "namespaces", "", namespace)
    for priority in system_priority_classes():
        _ensure(api, "priorityclasses.scheduling.k8s.io", "", priority)
    _ensure(api, "storageclasses.storage.k8s.io", "", default_storage_class())
    for role in _roles():
        _ensure_role(api, role)
    for binding in _bindings():
        _ensure(api, f"clusterrolebindings.{RBAC}", "", binding)
    _ensure(api, "services", "default", _service(port))
    for name in ("controller-manager", "etcd-0", "scheduler"):
        if api.store.get("componentstatuses", "", name) is None:
            api.store.put("componentstatuses", "", name, _component(name))


def _ensure(api: Api, resource: str, namespace: str, obj: Object) -> None:
    if api.find(resource, namespace, obj["metadata"]["name"]) is None:
        api.create(resource, obj, namespace)


def _ensure_role(api: Api, role: Object) -> None:
    """Create a role of the cluster's own, or give it the rules of this version: a file may be from an older one."""
    resource = f"clusterroles.{RBAC}"
    found = api.find(resource, None, role["metadata"]["name"])
    if found is None:
        api.create(resource, role)
    elif "aggregationRule" not in role and (found["metadata"].get("annotations") or {}).get(_KEPT) != "false":
        api.update(resource, {**found, "rules": role["rules"]})


def _service(port: int) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    return {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": SERVICE_ADDRESS,
            "clusterIPs": [SERVICE_ADDRESS],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": ports,
        },
        "status": {"loadBalancer": {}},
    }


def _component(name: str) -> Object:
    conditions = [{"type": "Healthy", "status": "True", "message": "ok"}]
    return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": conditions}


def _rules(table: tuple[tuple[str, str], ...], verbs: list[str]) -> list[Object]:
    return [{"apiGroups": [group], "resources": names.split(), "verbs": verbs} for group, names in table]


def _role(name: str, rules: list[Object], **labels: str) -> Object:
    about: Object = {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}}
    return {"metadata": about, "rules": rules}


def _aggregated(name: str, **labels: str) -> Object:
    role = _role(name, [], **labels)
    selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
    return {**role, "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _part_of(role: str) -> dict[str, str]:
    """The label by which a role's rules become another's too."""
    return {f"{_AGGREGATE}{role}": "true"}


def _roles() -> list[Object]:
    """The roles that people bind to others; those of Kubernetes' own components are not needed here."""
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    paths = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ]
    issuer = [f"{path}{end}" for path in ("/.well-known/openid-configuration", "/openid/v1/jwks") for end in ("", "/")]
    review = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    rbac = ((RBAC, "roles rolebindings"),)
    reviews = (("authorization.k8s.io", "localsubjectaccessreviews"),)
    evictions: tuple[tuple[str, str], ...] = (("", "pods/eviction"),)
    return [
        _role("cluster-admin", [everything, {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role("system:discovery", [{"nonResourceURLs": paths, "verbs": ["get"]}]),
        _role("system:public-info-viewer", [{"nonResourceURLs": paths[4:6] + paths[8:], "verbs": ["get"]}]),
        _role("system:service-account-issuer-discovery", [{"nonResourceURLs": issuer, "verbs": ["get"]}]),
        _role(
            "system:basic-user",
            [
                {"apiGroups": ["authorization.k8s.io"], "resources": review, "verbs": ["create"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ],
        ),
        _aggregated("admin"),
        _aggregated("edit", **_part_of("admin")),
        _aggregated("view", **_part_of("edit")),
        _role("system:aggregate-to-view", _rules(_READ_BY_ALL, _READ), **_part_of("view")),
        _role(
            "system:aggregated-metrics-reader", _rules((("metrics.k8s.io", "pods nodes"),), _READ), **_part_of("view")
        ),
        _role(
            "system:aggregate-to-edit",
            [
                *_rules(_WRITTEN, _WRITE),
                *_rules(_READ_BY_EDIT, _READ),
                *_rules(evictions, ["create"]),
                {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]},
                {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
            ],
            **_part_of("edit"),
        ),
        _role(
            "system:aggregate-to-admin",
            [*_rules(rbac, _READ + _WRITE), *_rules(reviews, ["create"])],
            **_part_of("admin"),
        ),
    ]


def _bindings() -> list[Object]:
    """Administrators may do everything; all who are known may ask what there is and what they may do."""
    found = []
    for role, group in (
        ("cluster-admin", "system:masters"),
        ("system:discovery", "system:authenticated"),
        ("system:basic-user", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
        ("system:service-account-issuer-discovery", "system:serviceaccounts"),
    ):
        subject = {"kind": "Group", "name": group, "apiGroup": RBAC}
        ref = {"kind": "ClusterRole", "name": role, "apiGroup": RBAC}
        about = {"name": role, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
        found.append({"metadata": about, "roleRef": ref, "subjects": [subject]})
    return found
