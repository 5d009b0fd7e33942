"""Gangs that are declared wrongly: one line that says where, exit code 2, nothing printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

CONTAINERS = "containers: [{name: main, image: x}]"


def volcano_job(*, task: str = "name: w", more: str = "minAvailable: 1") -> str:
    template = f"template: {{spec: {{{CONTAINERS}}}}}"
    return f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: j}}
spec:
  {more}
  tasks: [{{replicas: 2, {template}, {task}}}, {{name: z, replicas: 1, {template}, dependsOn: {{name: [w]}}}}]
"""


def policy(text: str) -> str:
    return volcano_job(more=f"policies: [{{{text}}}]")


def clique_set(
    *, a: str = "", b: str = "", more: str = "labels: {}", startup: str = "CliqueStartupTypeExplicit"
) -> str:
    pods = f"roleName: r, replicas: 1, podSpec: {{{CONTAINERS}}}"
    return f"""
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {{name: s}}
spec:
  replicas: 1
  template:
    cliqueStartupType: {startup}
    topologyConstraint: {{pack: {{required: zone}}}}
    cliques:
    - {{name: a, spec: {{{pods}{a}}}}}
    - {{name: b, spec: {{{pods}{b}}}, {more}}}
"""


def job(annotations: str) -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: j, annotations: {{{annotations}}}}}
spec: {{parallelism: 4, template: {{spec: {{restartPolicy: Never, {CONTAINERS}}}}}}}
"""


def pod_group(*, version: str = "v1beta1", minimum: str = "2") -> str:
    return f"""
apiVersion: scheduling.volcano.sh/{version}
kind: PodGroup
metadata: {{name: g}}
spec: {{minMember: {minimum}}}
"""


IN_JOB, IN_SET = "document 1 (Job default/j): ", "document 1 (PodCliqueSet default/s): "
KEYS = (
    "mooring.dev/gang, mooring.dev/gang-name, mooring.dev/gang-minimum, mooring.dev/gang-timeout, "
    "mooring.dev/gang-restart"
)
TOPOLOGY = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {name: t}\n"
HYPERNODE = "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\n"
ONE_NODE = "members: [{type: Node, selector: {exactMatch: {name: x}}}]"

BAD = [
    pytest.param(
        policy("event: PodEvicted, action: Explode"),
        f"{IN_JOB}spec.policies[0].action: expected one of AbortJob, RestartJob, RestartTask, RestartPod, "
        'RestartPartition, TerminateJob, CompleteJob, ResumeJob, found "Explode"',
        id="a policy of an unknown action",
    ),
    pytest.param(
        policy("event: PodEvicted"),
        f"{IN_JOB}spec.policies[0].action: expected one of AbortJob, RestartJob, RestartTask, RestartPod, "
        "RestartPartition, TerminateJob, CompleteJob, ResumeJob, found none",
        id="a policy without an action",
    ),
    pytest.param(
        policy("events: [PodFailed, PodEvictde], action: RestartJob"),
        f"{IN_JOB}spec.policies[0].events[1]: expected one of *, PodPending, PodFailed, PodEvicted, Unknown, "
        'TaskCompleted, TaskFailed, JobUpdated, found "PodEvictde"',
        id="a policy for an unknown event",
    ),
    pytest.param(
        policy("event: PodEvicted, exitCode: 3, action: RestartJob"),
        f"{IN_JOB}spec.policies[0].exitCode: expected none beside an event, found 3",
        id="a policy for an event and an exit code",
    ),
    pytest.param(
        policy("action: RestartJob"),
        f"{IN_JOB}spec.policies[0]: expected an event or an exitCode, found none",
        id="a policy for nothing",
    ),
    pytest.param(
        policy("exitCode: 0, action: RestartJob"),
        f"{IN_JOB}spec.policies[0]: expected an event or an exitCode, found exitCode 0, which is no failure",
        id="a policy for what is no failure",
    ),
    pytest.param(
        volcano_job(task="name: w, policies: [{event: PodFaild, action: RestartJob}]"),
        f"{IN_JOB}spec.tasks[0].policies[0].event: expected one of *, PodPending, PodFailed, PodEvicted, Unknown, "
        'TaskCompleted, TaskFailed, JobUpdated, found "PodFaild"',
        id="a task's policy",
    ),
    pytest.param(
        volcano_job(task="name: Bad_Name"),
        f'{IN_JOB}spec.tasks[0].name: expected lower case letters, digits and dashes, at most 63, found "Bad_Name"',
        id="a task's name",
    ),
    pytest.param(
        volcano_job(task="name: w, dependsOn: {name: [nosuch]}"),
        f'{IN_JOB}spec.tasks[0].dependsOn.name: expected the name of a task (w, z), found "nosuch"',
        id="after an unknown task",
    ),
    pytest.param(
        volcano_job(task="name: w, dependsOn: {name: [z]}"),
        f"{IN_JOB}spec.tasks[0].dependsOn.name: expected a task that does not wait for this one, "
        "found a cycle, w -> z -> w",
        id="tasks after one another",
    ),
    pytest.param(
        volcano_job(task="name: w, dependsOn: {name: [], iteration: some}"),
        f'{IN_JOB}spec.tasks[0].dependsOn.iteration: expected one of any, all, found "some"',
        id="after some of the tasks",
    ),
    pytest.param(
        volcano_job(task="name: w, topologyPolicy: nope"),
        f"{IN_JOB}spec.tasks[0].topologyPolicy: expected one of none, best-effort, restricted, single-numa-node, "
        'found "nope"',
        id="a task's topology policy",
    ),
    pytest.param(
        clique_set(startup="Random"),
        f"{IN_SET}spec.template.cliqueStartupType: expected one of CliqueStartupTypeAnyOrder, "
        'CliqueStartupTypeInOrder, CliqueStartupTypeExplicit, found "Random"',
        id="an unknown order of cliques",
    ),
    pytest.param(
        clique_set(a=", startsAfter: [zzz]"),
        f'{IN_SET}spec.template.cliques[0].spec.startsAfter: expected the name of a clique (a, b), found "zzz"',
        id="after an unknown clique",
    ),
    pytest.param(
        clique_set(a=", startsAfter: [a]", startup="Explicit"),
        f"{IN_SET}spec.template.cliques[0].spec.startsAfter: expected a clique that does not wait for this one, "
        "found a cycle, a -> a",
        id="a clique after itself",
    ),
    pytest.param(
        clique_set(a=", startsAfter: [b]", b=", startsAfter: [a]"),
        f"{IN_SET}spec.template.cliques[0].spec.startsAfter: expected a clique that does not wait for this one, "
        "found a cycle, a -> b -> a",
        id="cliques after one another",
    ),
    pytest.param(
        clique_set(more="topologyConstraint: {pack: {required: region}}"),
        f"{IN_SET}spec.template.cliques[1].topologyConstraint.pack.required: expected zone or a narrower domain, "
        'found "region"',
        id="a clique in a broader place than its set",
    ),
    pytest.param(
        f"{TOPOLOGY}spec: {{levels: [{{nodeLabel: rack}}, {{nodeLabel: a b}}]}}",
        'document 1 (Topology t): spec.levels[1].nodeLabel: expected the key of a node label, found "a b"',
        id="a level that no node can have",
    ),
    pytest.param(
        f"{HYPERNODE}spec: {{{ONE_NODE}}}",
        "document 1 (HyperNode h): spec.tier: expected a value, found none",
        id="a HyperNode of no tier",
    ),
    pytest.param(
        job('mooring.dev/gangs: "true"'),
        f'{IN_JOB}metadata.annotations.mooring.dev/gangs: expected one of {KEYS}, found "mooring.dev/gangs"',
        id="an annotation that is none",
    ),
    pytest.param(
        job('mooring.dev/gang-min: "2"'),
        f'{IN_JOB}metadata.annotations.mooring.dev/gang-min: expected one of {KEYS}, found "mooring.dev/gang-min"',
        id="another one",
    ),
    pytest.param(
        job('mooring.dev/gang: "false", mooring.dev/gang-minimum: "2"'),
        f'{IN_JOB}metadata.annotations.mooring.dev/gang-minimum: expected none beside mooring.dev/gang: "false", '
        'found "2"',
        id="a minimum of no gang",
    ),
    pytest.param(
        pod_group(minimum="99999999999999999999"),
        "document 1 (PodGroup default/g): spec.minMember: expected at most 2147483647, the largest count, "
        "found 99999999999999999999",
        id="a minimum beyond all counts",
    ),
    pytest.param(
        pod_group(version="v9"),
        "document 1 (PodGroup default/g): apiVersion: expected scheduling.volcano.sh/v1beta1, "
        'found "scheduling.volcano.sh/v9"',
        id="an unknown version",
    ),
    pytest.param(
        "apiVersion: jobset.x-k8s.io/v9\nkind: JobSet\nmetadata: {name: r}\nspec: {}\n",
        'document 1 (JobSet default/r): apiVersion: expected jobset.x-k8s.io/v1alpha2, found "jobset.x-k8s.io/v9"',
        id="an unknown version of a kind of job",
    ),
]

GOOD = [
    policy("event: '*', action: RestartJob"),
    policy("exitCode: 3, action: AbortJob"),
    volcano_job(
        task="topologyPolicy: restricted, policies: [{events: [PodFailed, PodEvicted], action: RestartTask}]"
    ).replace("[w]", "[default0]"),
    clique_set(b=", startsAfter: [a]"),
    clique_set(a=", startsAfter: [nobody, a]", startup="CliqueStartupTypeAnyOrder"),
    clique_set(more="topologyConstraint: {pack: {required: host}}"),
    clique_set(more="topologyConstraint: {pack: {required: rack}}"),
    f"{HYPERNODE}spec: {{tier: 0, {ONE_NODE}}}",
    job('mooring.dev/gang: "true", mooring.dev/gang-minimum: "2", mooring.dev/gang-timeout: 5m'),
    pod_group(minimum="2147483647"),
    clique_set().replace("grove.io/v1alpha1", '""'),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_gang_that_is_declared_wrongly_is_refused_in_one_line(
    mooring: Call, write: Callable[..., Path], text: str, message: str
) -> None:
    path = write(text)
    outcome = mooring("schedule", "-f", path)

    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {path}: {message}\n")


@pytest.mark.parametrize("text", GOOD)
def test_what_their_own_systems_take_is_taken(mooring: Call, write: Callable[..., Path], text: str) -> None:
    assert mooring("schedule", "-f", write(text)).err == ""


TOO_MANY = {
    "volcano": (volcano_job(task="name: w").replace("replicas: 2", "replicas: 2000000000"), "spec.tasks"),
    "grove": (clique_set().replace("  replicas: 1\n", "  replicas: 600000\n"), "spec.replicas"),
    "lws": (
        f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: s}}
spec: {{replicas: 1000, leaderWorkerTemplate: {{size: 2000, workerTemplate: {{spec: {{{CONTAINERS}}}}}}}}}
""",
        "spec.replicas",
    ),
    "jobset": (
        f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: s}}
spec:
  replicatedJobs:
  - name: w
    replicas: 2000
    template: {{spec: {{parallelism: 1000, completions: 1000, template: {{spec: {{{CONTAINERS}}}}}}}}}
""",
        "spec.replicatedJobs",
    ),
}


@pytest.mark.parametrize("kind", TOO_MANY)
def test_counts_that_make_too_many_pods_in_all_are_refused(mooring: Call, write: Call, kind: str) -> None:
    text, field = TOO_MANY[kind]

    outcome = mooring("schedule", "-f", write(text))

    assert (outcome.code, outcome.out) == (2, "")
    assert f": {field}: expected at most 1,000,000 pods in all, found " in outcome.err
