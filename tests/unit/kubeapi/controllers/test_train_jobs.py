"""TrainJobs, AppWrappers and DisaggregatedSets become the objects that their controllers would make."""

from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.app_wrappers import AppWrappers
from mooring.kubeapi.controllers.conditions import is_true
from mooring.kubeapi.controllers.disaggregated_sets import DisaggregatedSets
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.job_sets import JobSets
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.leader_worker_sets import LeaderWorkerSets
from mooring.kubeapi.controllers.train_jobs import TrainJobs

TRAIN_JOBS, RUNTIMES = "trainjobs.trainer.kubeflow.org", "clustertrainingruntimes.trainer.kubeflow.org"
JOB_SETS, WRAPPERS = "jobsets.jobset.x-k8s.io", "appwrappers.workload.codeflare.dev"


def make_world() -> World:
    return World(TrainJobs, JobSets, Jobs, AppWrappers, DisaggregatedSets, LeaderWorkerSets, GarbageCollector)


def lasting(duration: str) -> Object:
    made = template()
    made["spec"] |= {"containers": [{"name": "node", "image": "x", "command": ["train"]}], "restartPolicy": "Never"}
    made["metadata"]["annotations"] = {"mooring.dev/duration": duration}
    return made


def runtime(duration: str = "20s", **spec: Any) -> Object:
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    job = {"name": "node", "replicas": 1, "template": {"metadata": step, "spec": {"template": lasting(duration)}}}
    return {
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}, **spec},
    }


def train_job(**spec: Any) -> Object:
    return {"metadata": {"name": "train"}, "spec": {"runtimeRef": {"name": "torch"}, **spec}}


def events(world: World) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in world.api.list("events")]


def test_a_train_job_has_the_pods_of_its_runtime_and_ends_with_them() -> None:
    world = make_world()
    world.create(RUNTIMES, runtime())
    world.create(TRAIN_JOBS, train_job(trainer={"numNodes": 3, "image": "mine", "env": [{"name": "A", "value": "1"}]}))

    world.run(5)
    pods = world.api.list("pods")
    assert len(pods) == 3
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"mine"}
    owners = world.get(JOB_SETS, "train")["metadata"]["ownerReferences"]
    assert [(each["kind"], each["name"], each["controller"]) for each in owners] == [("TrainJob", "train", True)]
    world.run(60)

    assert is_true(world.get(TRAIN_JOBS, "train"), "Complete")
    assert world.get(TRAIN_JOBS, "train")["status"]["jobsStatus"][0]["succeeded"] == 1


def test_a_suspended_train_job_starts_with_what_was_patched_meanwhile() -> None:
    world = make_world()
    world.create(RUNTIMES, runtime("1h"))
    world.create(TRAIN_JOBS, train_job(suspend=True))
    world.run(5)
    assert world.api.list("pods") == []
    assert is_true(world.get(TRAIN_JOBS, "train"), "Suspended")

    spec = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]
    patch = {"manager": "x.io/y", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    world.change(TRAIN_JOBS, "train", lambda job: job["spec"].update({"suspend": False, "runtimePatches": [patch]}))
    world.run(5)

    [pod] = world.api.list("pods")
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}
    assert pod["spec"]["tolerations"][0] == {"key": "gpu", "operator": "Exists"}
    world.change(TRAIN_JOBS, "train", lambda job: job["spec"].update({"suspend": True, "runtimePatches": []}))
    world.run(60)
    assert world.api.list("pods") == []
    job = world.get(JOB_SETS, "train")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert "nodeSelector" not in job


def test_a_train_job_without_its_runtime_waits_for_it_and_says_so() -> None:
    world = make_world()
    world.create(TRAIN_JOBS, train_job())
    world.run(5)

    message = "ClusterTrainingRuntime torch is not found: no pods are made, and the TrainJob is not admitted to a queue"
    assert ("TrainingRuntimeNotFound", message) in events(world)
    world.create(RUNTIMES, runtime("1h"))
    world.run(5)
    assert len(world.api.list("pods")) == 1


def test_a_runtime_lets_the_pods_of_its_jobs_start_together() -> None:
    world = make_world()
    world.create(RUNTIMES, runtime("1h", podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 90}}))
    world.create(TRAIN_JOBS, train_job(trainer={"numNodes": 2}))
    world.run(5)

    group = world.get("podgroups.scheduling.x-k8s.io", "train")
    assert group["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 90}
    labels = [pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in world.api.list("pods")]
    assert labels == ["train", "train"]


def wrapper(duration: str, **spec: Any) -> Object:
    inner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "inner"}}
    inner["spec"] = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": lasting(duration)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    infos = [{"nodeSelector": {"pool": "a"}, "labels": {"kueue.x-k8s.io/podset": "wrap-ps-0"}}]
    components = [{"template": config}, {"template": inner, "podSetInfos": infos}]
    return {"metadata": {"name": "wrap"}, "spec": {"components": components, **spec}}


def test_an_app_wrapper_makes_what_is_inside_and_ends_with_it() -> None:
    world = make_world()
    world.create(WRAPPERS, wrapper("20s"))
    world.run(5)

    pods = world.api.list("pods")
    assert len(pods) == 2
    assert {pod["metadata"]["labels"]["workload.codeflare.dev/appwrapper"] for pod in pods} == {"wrap"}
    assert {pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] for pod in pods} == {"wrap-ps-0"}
    assert {pod["spec"]["nodeSelector"]["pool"] for pod in pods} == {"a"}
    assert world.get("configmaps", "settings")["data"] == {"a": "b"}
    assert world.get(WRAPPERS, "wrap")["status"]["phase"] == "Running"
    world.run(60)
    assert world.get(WRAPPERS, "wrap")["status"]["phase"] == "Succeeded"


def test_a_suspended_app_wrapper_has_nothing_of_what_is_inside() -> None:
    world = make_world()
    world.create(WRAPPERS, wrapper("1h"))
    world.run(5)

    world.change(WRAPPERS, "wrap", lambda found: found["spec"].update(suspend=True))
    world.run(120)

    assert world.api.list("pods") == world.api.list("jobs.batch") == []
    assert world.get(WRAPPERS, "wrap")["status"]["phase"] == "Suspended"


def test_an_app_wrapper_fails_with_a_component() -> None:
    world = make_world()
    made = wrapper("5s")
    job = made["spec"]["components"][1]["template"]["spec"]["template"]
    job["metadata"]["annotations"]["mooring.dev/exit-code"] = "1"
    world.create(WRAPPERS, made)
    world.run(60)

    assert world.get(WRAPPERS, "wrap")["status"]["phase"] == "Failed"


def test_a_disaggregated_set_has_a_leader_worker_set_for_each_role_and_slice() -> None:
    world = make_world()
    roles = [
        {"name": name, "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": lasting("1h")}}}
        for name in ("decode", "prefill")
    ]
    made = {"metadata": {"name": "llm"}, "spec": {"slices": 2, "roles": roles}}
    world.create("disaggregatedsets.disaggregatedset.x-k8s.io", made)
    world.run(5)

    sets = "leaderworkersets.leaderworkerset.x-k8s.io"
    names = sorted(each["metadata"]["name"] for each in world.api.list(sets))
    assert names == ["llm-0-decode", "llm-0-prefill", "llm-1-decode", "llm-1-prefill"]
    assert len(world.api.list("pods")) == 8
    world.change("disaggregatedsets.disaggregatedset.x-k8s.io", "llm", lambda found: found["spec"].update(slices=1))
    world.run(60)
    assert len(world.api.list("pods")) == 4
