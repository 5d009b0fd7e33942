"""The rules of the built-in kinds: what is filled in, what is kept, what is refused and in which words."""

from collections.abc import Iterable
from typing import Any

import pytest

from mooring.kubeapi.api import Api
from mooring.kubeapi.kinds import Kinds
from mooring.kubeapi.kinds.defaults import DEFAULTS
from mooring.kubeapi.registry import Registry
from mooring.kubeapi.schemas.notation import kinds, type_of_kind
from mooring.kubeapi.schemas.types import Type
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store
from mooring.model.objects.kinds import KINDS

Object = dict[str, Any]
NOW = "2027-01-15T08:00:00Z"


@pytest.fixture
def api() -> Api:
    store, registry = Store(), Registry()

    def services() -> Iterable[Object]:
        return [record.decode() for record in store.records("services", None)]

    strategies = Kinds(services, lambda: NOW)
    return Api(
        store,
        registry,
        strategy_of=strategies.strategy_of,
        now=lambda: 1_800_000_000.0,
    )


def _pod(name: str = "web", **spec: Any) -> Object:
    containers = [{"name": "main", "image": "pause"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def _template(**spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": _pod(**spec)["spec"]}


def _deployment(**spec: Any) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "web"}, "spec": {"selector": selector, "template": _template(), **spec}}


def _refusal(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **options)
    assert refused.value.code == 422
    return refused.value.message


def test_a_pod_is_pending_with_its_class_of_service(api: Api) -> None:
    pod = api.create("pods", _pod(), "default")

    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1
    assert pod["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "pause",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_a_zero_that_was_said_is_no_default(api: Api) -> None:
    pod = api.create("pods", _pod(terminationGracePeriodSeconds=0, enableServiceLinks=False), "default")

    assert (pod["spec"]["terminationGracePeriodSeconds"], pod["spec"]["enableServiceLinks"]) == (0, False)


def test_a_gated_pod_says_why_it_is_not_scheduled(api: Api) -> None:
    pod = api.create("pods", _pod(schedulingGates=[{"name": "example.com/gate"}]), "default")

    assert [condition["reason"] for condition in pod["status"]["conditions"]] == ["SchedulingGated"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": []}, 'Pod "web" is invalid: spec.containers: Required value'),
        (
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {
                "containers": [
                    {"name": "a", "image": "b", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            },
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"containers": [{"name": "a", "image": "b", "volumeMounts": [{"name": "v", "mountPath": "/x"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"securityContext": {"sysctls": [{"name": "foo-", "value": "bar"}]}},
            'spec.securityContext.sysctls[0].name: Invalid value: "foo-": must have at most 253 characters',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "value must be empty when `operator` is 'Exists'",
        ),
    ],
)
def test_a_pod_that_is_wrong_is_refused(api: Api, spec: Object, message: str) -> None:
    assert message in _refusal(api.create, "pods", _pod(**spec), "default")


def test_most_of_a_pod_never_changes(api: Api) -> None:
    api.create("pods", _pod(), "default")

    message = _refusal(api.patch, "pods", "default", "web", {"spec": {"hostNetwork": True}}, "merge")

    assert "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`" in message


def test_an_image_may_change_and_counts_as_a_new_generation(api: Api) -> None:
    api.create("pods", _pod(), "default")
    patch = {"spec": {"containers": [{"name": "main", "image": "other"}]}}

    pod = api.patch("pods", "default", "web", patch, "strategic")

    assert (pod["spec"]["containers"][0]["image"], pod["metadata"]["generation"]) == ("other", 2)


def test_resources_change_by_a_resize_only(api: Api) -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    api.create("pods", _pod(containers=[{"name": "main", "image": "pause", "resources": resources}]), "default")
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]}}

    assert "pod updates may not change" in _refusal(api.patch, "pods", "default", "web", patch, "strategic")
    pod = api.patch("pods", "default", "web", patch, "strategic", subresource="resize")

    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1500m"}


def test_a_resize_keeps_the_class_of_service(api: Api) -> None:
    resources = {"requests": {"cpu": "1"}}
    api.create("pods", _pod(containers=[{"name": "main", "image": "pause", "resources": resources}]), "default")
    full = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    patch = {"spec": {"containers": [{"name": "main", "resources": full}]}}

    message = _refusal(api.patch, "pods", "default", "web", patch, "strategic", subresource="resize")

    assert "Pod QOS Class may not change as a result of resizing" in message


def test_a_status_update_changes_nothing_else(api: Api) -> None:
    pod = api.create("pods", _pod(), "default")
    pod["spec"]["hostNetwork"] = True
    pod["status"]["phase"] = "Running"

    updated = api.update("pods", pod, subresource="status")

    assert (updated["status"]["phase"], "hostNetwork" in updated["spec"]) == ("Running", False)
    assert updated["metadata"]["generation"] == 1


def test_a_deployment_gets_a_strategy_and_counts_generations(api: Api) -> None:
    created = api.create("deployments.apps", _deployment(), "default")

    scaled = api.patch("deployments.apps", "default", "web", {"spec": {"replicas": 3}}, "merge")

    assert created["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert (created["metadata"]["generation"], scaled["metadata"]["generation"]) == (1, 2)


def test_a_selector_never_changes_and_selects_its_template(api: Api) -> None:
    api.create("deployments.apps", _deployment(), "default")
    other = {"spec": {"selector": {"matchLabels": {"app": "db"}}}}

    message = _refusal(api.patch, "deployments.apps", "default", "web", other, "merge")

    assert "`selector` does not match template `labels`" in message
    assert "spec.selector: Invalid value: " in message
    assert "field is immutable" in message


def test_a_job_selects_its_pods_by_its_uid(api: Api) -> None:
    job = api.create(
        "jobs.batch", {"metadata": {"name": "j"}, "spec": {"template": _template(restartPolicy="Never")}}, "default"
    )

    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"]["job-name"] == "j"
    assert (job["spec"]["backoffLimit"], job["spec"]["completions"]) == (6, 1)


def test_a_job_has_to_say_how_its_pods_end(api: Api) -> None:
    message = _refusal(api.create, "jobs.batch", {"metadata": {"name": "j"}, "spec": {"template": _template()}})

    assert 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"' in message


def test_a_suspended_job_may_be_told_where_to_run(api: Api) -> None:
    spec = {"template": _template(restartPolicy="Never"), "suspend": True}
    api.create("jobs.batch", {"metadata": {"name": "j"}, "spec": spec}, "default")
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}, "suspend": False}}

    api.patch("jobs.batch", "default", "j", patch, "merge")

    later = {"spec": {"template": {"spec": {"nodeSelector": {"a": "c"}}}}}
    assert "spec.template: Invalid value" in _refusal(api.patch, "jobs.batch", "default", "j", later, "merge")


def test_services_get_addresses_of_their_own(api: Api) -> None:
    ports = {"spec": {"ports": [{"port": 80}], "type": "NodePort"}}

    found = [api.create("services", {"metadata": {"name": name}, **ports}, "default") for name in ("a", "b")]

    assert [service["spec"]["clusterIP"] for service in found] == ["10.0.0.2", "10.0.0.3"]
    assert [service["spec"]["ports"][0]["nodePort"] for service in found] == [30000, 30001]


def test_a_port_of_the_nodes_has_one_service(api: Api) -> None:
    spec = {"ports": [{"port": 80, "nodePort": 30500}], "type": "NodePort"}
    api.create("services", {"metadata": {"name": "a"}, "spec": spec}, "default")

    message = _refusal(api.create, "services", {"metadata": {"name": "b"}, "spec": spec}, "default")

    assert "spec.ports[0].nodePort: Invalid value: 30500: provided port is already allocated" in message


def test_a_service_keeps_its_address(api: Api) -> None:
    api.create("services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}, "default")

    message = _refusal(api.patch, "services", "default", "a", {"spec": {"clusterIP": "10.0.0.9"}}, "merge")

    assert "spec.clusterIPs[0]: Invalid value" in message
    assert "may not change once set" in message


@pytest.mark.parametrize("resource", ["configmaps", "secrets"])
def test_what_is_immutable_stays_so(api: Api, resource: str) -> None:
    api.create(resource, {"metadata": {"name": "a"}, "data": {"k": "dg=="}, "immutable": True}, "default")

    message = _refusal(api.patch, resource, "default", "a", {"data": {"k": "dw=="}}, "merge")

    assert "data: Forbidden: field is immutable when `immutable` is set" in message
    api.patch(resource, "default", "a", {"metadata": {"labels": {"a": "b"}}}, "merge")


def test_string_data_of_a_secret_is_encoded(api: Api) -> None:
    secret = api.create("secrets", {"metadata": {"name": "a"}, "stringData": {"k": "v"}}, "default")

    assert (secret["data"], secret["type"], "stringData" in secret) == ({"k": "dg=="}, "Opaque", False)


def test_a_priority_never_changes(api: Api) -> None:
    api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "p"}, "value": 1})

    message = _refusal(api.patch, "priorityclasses.scheduling.k8s.io", None, "p", {"value": 2}, "merge")

    assert message == (
        'PriorityClass.scheduling.k8s.io "p" is invalid: value: Forbidden: may not be changed in an update.'
    )


def test_a_namespace_is_active_and_has_its_finalizer_and_name_as_label(api: Api) -> None:
    namespace = api.create("namespaces", {"metadata": {"name": "team"}})

    assert (namespace["status"], namespace["spec"]) == ({"phase": "Active"}, {"finalizers": ["kubernetes"]})
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


def test_a_name_that_is_no_name_is_refused(api: Api) -> None:
    message = _refusal(api.create, "configmaps", {"metadata": {"name": "No_Name"}}, "default")

    assert message.startswith(
        'ConfigMap "No_Name" is invalid: metadata.name: Invalid value: "No_Name": a lowercase RFC 1123 subdomain must'
    )


def test_what_scheduling_knows_to_be_wrong_with_a_queue_is_refused(api: Api) -> None:
    queue = {"metadata": {"name": "q"}, "spec": {"weight": -1}}

    assert "spec.weight" in _refusal(api.create, "queues.scheduling.volcano.sh", queue)


def test_queues_of_kueue_and_volcano_get_the_defaults_of_their_own_definitions(api: Api) -> None:
    preemption = {"reclaimWithinCohort": "Any"}
    kueue = api.create("clusterqueues.kueue.x-k8s.io", {"metadata": {"name": "q"}, "spec": {"preemption": preemption}})
    volcano = api.create("queues.scheduling.volcano.sh", {"metadata": {"name": "q"}, "spec": {"weight": 3}})

    assert kueue["spec"] == {
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "Never",
            "borrowWithinCohort": {"policy": "Never"},
        },
    }
    assert (volcano["spec"], volcano["status"]) == (
        {"weight": 3, "reclaimable": True, "parent": "root"},
        {"state": "Open"},
    )


def test_a_bound_claim_may_grow_and_nothing_else(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec}, "default")
    grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}

    api.patch("persistentvolumeclaims", "default", "c", grown, "merge")

    other = {"spec": {"accessModes": ["ReadWriteMany"]}}
    message = _refusal(api.patch, "persistentvolumeclaims", "default", "c", other, "merge")
    assert "spec is immutable after creation except resources.requests" in message


def test_defaults_are_declared_for_types_that_exist() -> None:
    seen: set[str] = set()

    def visit(type_: Type) -> None:
        if type_.item is not None:
            visit(type_.item)
        if type_.form == "struct" and type_.name not in seen:
            seen.add(type_.name)
            for field in type_.fields.values():
                visit(field.type)

    for key in kinds():
        found = type_of_kind(*key)
        assert found is not None
        visit(found)
    assert DEFAULTS.keys() - seen == set()


def test_every_kind_that_is_read_offline_is_served() -> None:
    served = {(resource.group, resource.kind) for resource in Registry()}

    assert [(kind.group, kind.name) for kind in KINDS if (kind.group, kind.name) not in served] == []


def test_templates_in_kinds_of_others_stay_as_they_are(api: Api) -> None:
    """A pod gets its defaults when it is created: a Volcano Job's own schedulerName is for templates without one."""
    spec = {"containers": [{"name": "main", "image": "pause"}]}
    task = {"name": "worker", "replicas": 1, "template": {"spec": spec}}
    job = {"metadata": {"name": "train"}, "spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task]}}
    made = api.create("jobs.batch.volcano.sh", job, "default")
    replicated = {"name": "worker", "template": {"spec": {"template": {"spec": spec}}}}
    job_set = {"metadata": {"name": "train"}, "spec": {"replicatedJobs": [replicated]}}
    made_set = api.create("jobsets.jobset.x-k8s.io", job_set, "default")

    assert made["spec"]["tasks"][0]["template"]["spec"] == {
        **spec,
        "containers": [{**spec["containers"][0], "resources": {}}],
    }
    (worker,) = made_set["spec"]["replicatedJobs"]
    assert worker["template"]["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"


RAY_QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
RAY_CLUSTER = {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": _pod()["spec"]}}}


def _ray_job(labels: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "train", "labels": labels or {}},
        "spec": {"entrypoint": "python main.py", "rayClusterSpec": RAY_CLUSTER, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        pytest.param(
            {}, "spec.shutdownAfterJobFinishes", "its cluster must go when it is done", id="a-cluster-that-stays"
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": None, "clusterSelector": {"a": "b"}},
            "spec.clusterSelector",
            "it needs a cluster of its own",
            id="the-cluster-of-another",
        ),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": {**RAY_CLUSTER, "enableInTreeAutoscaling": True}},
            "spec.rayClusterSpec.enableInTreeAutoscaling",
            "false for what queues",
            id="a-cluster-that-scales-itself",
        ),
    ],
)
def test_a_ray_job_that_queues_is_refused_as_offline_commands_and_kueue_do(
    api: Api, spec: Object, field: str, expected: str
) -> None:
    message = _refusal(api.create, "rayjobs.ray.io", _ray_job(RAY_QUEUE, **spec), "default")
    assert message.startswith(f'RayJob.ray.io "train" is invalid: {field}: ') and expected in message
    assert api.create("rayjobs.ray.io", _ray_job(**spec), "default"), "who does not queue may"


def test_a_ray_job_that_queues_stays_one_that_may(api: Api) -> None:
    made = api.create("rayjobs.ray.io", _ray_job(RAY_QUEUE, shutdownAfterJobFinishes=True), "default")
    changed = {**made, "spec": {**made["spec"], "shutdownAfterJobFinishes": False}}
    assert "spec.shutdownAfterJobFinishes" in _refusal(api.update, "rayjobs.ray.io", changed)
