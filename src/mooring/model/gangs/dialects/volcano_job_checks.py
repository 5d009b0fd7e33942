"""Checks of Volcano's Job, as its webhook makes them."""

from mooring.model.gangs.checks import check_at_most, check_count, check_dns_label, check_names, check_order, check_pods
from mooring.model.gangs.dialects.volcano import check_network
from mooring.model.gangs.dialects.volcano_cron_job import VolcanoCronJob, next_job
from mooring.model.gangs.dialects.volcano_job import DependsOn, LifecyclePolicy, TaskSpec, VolcanoJob
from mooring.model.places import show
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.terms import Subject, check_choice

ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
EVENTS = ("*", "PodPending", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
"""Those that a policy may name; what controllers tell each other is not among them."""
NUMA_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
ITERATIONS = ("any", "all")


def check_job(subject: Subject, job: VolcanoJob, path: str = "spec") -> None:
    spec = job.spec
    if not spec.tasks:
        subject.refuse(f"{path}.tasks", expected="at least one task", found="none")
    names = [task.name or f"default{index}" for index, task in enumerate(spec.tasks)]
    check_names(subject, f"{path}.tasks", names)
    for index, task in enumerate(spec.tasks):
        _check_task(subject, f"{path}.tasks[{index}]", task)
    _check_dependencies(subject, path, names, spec.tasks)
    _check_policies(subject, f"{path}.policies", spec.policies)
    check_count(subject, f"{path}.minAvailable", spec.min_available)
    total = sum(task.count for task in spec.tasks)
    check_pods(subject, f"{path}.tasks", total)
    check_at_most(subject, f"{path}.minAvailable", spec.min_available or 0, total, "the replicas of all tasks")
    check_network(subject, f"{path}.networkTopology", spec.network_topology)


def check_cron_job(subject: Subject, found: VolcanoCronJob) -> None:
    check_job(subject, next_job(found), "spec.jobTemplate.spec")


def _check_dependencies(subject: Subject, path: str, names: list[str], tasks: list[TaskSpec]) -> None:
    paths = {name: f"{path}.tasks[{index}].dependsOn" for index, name in enumerate(names)}
    earlier_of: dict[str, list[str]] = {}
    for name, task in zip(names, tasks, strict=True):
        depends_on = task.depends_on or DependsOn()
        if depends_on.iteration:
            check_choice(subject, f"{paths[name]}.iteration", depends_on.iteration, ITERATIONS)
        earlier_of[name] = depends_on.name or []
    check_order(subject, lambda name: f"{paths[name]}.name", earlier_of, "task")


def _check_policies(subject: Subject, path: str, policies: list[LifecyclePolicy] | None) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies or ()):
        here = f"{path}[{index}]"
        events = {f"{here}.event": policy.event} if policy.event else {}
        events |= {f"{here}.events[{number}]": event for number, event in enumerate(policy.events or ())}
        for field, event in events.items():
            check_choice(subject, field, event, EVENTS)
            if event in seen:
                subject.refuse(field, expected="an event that no earlier policy names", found=show(event))
        seen.update(events.values())
        if events and policy.exit_code is not None:
            subject.refuse(f"{here}.exitCode", expected="none beside an event", found=show(policy.exit_code))
        if not events and not policy.exit_code:
            found = "none" if policy.exit_code is None else "exitCode 0, which is no failure"
            subject.refuse(here, expected="an event or an exitCode", found=found)
        check_choice(subject, f"{here}.action", policy.action, ACTIONS)


def _check_task(subject: Subject, path: str, task: TaskSpec) -> None:
    if task.name:
        check_dns_label(subject, f"{path}.name", task.name)
    if task.topology_policy:
        check_choice(subject, f"{path}.topologyPolicy", task.topology_policy, NUMA_POLICIES)
    _check_policies(subject, f"{path}.policies", task.policies)
    if task.replicas is None:
        subject.refuse(f"{path}.replicas", expected="a number of at least 0", found="none")
    check_count(subject, f"{path}.replicas", task.replicas)
    check_count(subject, f"{path}.minAvailable", task.min_available)
    check_at_most(subject, f"{path}.minAvailable", task.minimum, task.count, "the replicas of the task")
    check_pod_spec(subject, f"{path}.template.spec", task.template.spec)
    partitions = task.partition_policy
    if partitions is None:
        return
    here = f"{path}.partitionPolicy"
    check_count(subject, f"{here}.totalPartitions", partitions.total_partitions, least=1)
    check_count(subject, f"{here}.partitionSize", partitions.partition_size, least=1)
    product = partitions.total_partitions * partitions.partition_size
    if product != task.count:
        expected = f"totalPartitions times partitionSize to be {task.count}, the replicas of the task"
        subject.refuse(here, expected=expected, found=show(product))
    check_count(subject, f"{here}.minPartitions", partitions.min_partitions)
    most = partitions.total_partitions
    check_at_most(subject, f"{here}.minPartitions", partitions.min_partitions, most, "the partitions of the task")
    check_network(subject, f"{here}.networkTopology", partitions.network_topology)
