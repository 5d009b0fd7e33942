"""Volcano's queues as people try them: manifests and settings in, placements out."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

TWO_QUEUES = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {weight: 1}
"""


def pods(queue: str, name: str, count: int, status: str = "") -> str:
    """So many pods of one GPU each."""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  annotations: {{scheduling.volcano.sh/queue-name: {queue}, mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
{status}"""


def placed(mooring: Call, *arguments: str) -> list[Counter[str]]:
    """How many pods each step placed, by the first letter of their names."""
    outcome = mooring("schedule", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) in ((0, ""), (1, ""))
    found = json.loads(outcome.out)
    results = [step["result"] for step in found["steps"]] if "steps" in found else [found]
    return [Counter(placement["pod"][0] for placement in result["placements"]) for result in results]


def test_who_had_much_in_the_past_gets_less_now_if_the_past_counts(mooring: Call, write: Call) -> None:
    first = write(TWO_QUEUES + pods("a", "a-old", 8), "1.yaml")
    ended = pods("a", "a-old", 8, "status: {phase: Succeeded}")
    then = write(ended + pods("a", "a-new", 8) + pods("b", "b", 8), "2.yaml")
    policy = "apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\n"
    remembers = write(policy + "usageHalfLifeSeconds: 3600\n", "policy.yaml")

    story = ("-f", first, "--then", f"2h:{then}")

    assert placed(mooring, *story) == [{"a": 8}, {"a": 4, "b": 4}]
    assert placed(mooring, *story, "--config", remembers) == [{"a": 8}, {"b": 8}]


def queue(name: str, spec: str) -> str:
    return f"""
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec: {spec}"""


NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}"""


def policy(shares: str) -> str:
    return f"apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\nshares: {shares}\n"


def test_devices_are_divided_into_fractions_as_volcano_does_or_whole(mooring: Call, write: Call) -> None:
    names = ("a", "b", "c")
    file = write(NODE + "".join(queue(name, "{weight: 1}") + pods(name, name, 8) for name in names))
    whole = write(policy("{division: Weighted}"), "policy.yaml")

    # A third of eight GPUs is two and a bit for each, and nobody may use the bits.
    assert placed(mooring, "-f", file) == [{"a": 2, "b": 2, "c": 2}]
    assert placed(mooring, "-f", file, "--config", whole) == [{"a": 3, "b": 3, "c": 2}]


def test_guarantees_limit_each_queue_alone_or_all_together(mooring: Call, write: Call) -> None:
    kept = queue("k", "{guarantee: {resource: {nvidia.com/gpu: 4}}}")
    others = "".join(queue(name, "{}") + pods(name, name, 8) for name in ("a", "b"))
    file = write(NODE + kept + others)
    capacity = write(policy("{division: Capacity}"), "policy.yaml")
    keeps = write(policy("{division: Capacity, keepsGuarantees: true}"), "keeps.yaml")

    assert sum(placed(mooring, "-f", file, "--config", capacity)[0].values()) == 8
    assert sum(placed(mooring, "-f", file, "--config", keeps)[0].values()) == 4


def test_shares_of_departments_are_those_of_the_start_or_move(mooring: Call, write: Call) -> None:
    departments = queue("x", "{deserved: {nvidia.com/gpu: 4}}") + queue("y", "{deserved: {nvidia.com/gpu: 4}}")
    teams = "".join(
        queue(name, f"{{parent: {name[0]}, reclaimable: false, deserved: {{nvidia.com/gpu: 4}}}}") + pods(name, name, 8)
        for name in ("xa", "yb")
    )
    file = write(NODE + departments + teams)
    capacity = write(policy("{division: Capacity}"), "policy.yaml")
    moves = write(policy("{division: Capacity, movesParentShares: true}"), "moves.yaml")

    # Nobody held anything at the start: both departments count as empty to the end, and the first takes all.
    assert placed(mooring, "-f", file, "--config", capacity) == [{"x": 8}]
    assert placed(mooring, "-f", file, "--config", moves) == [{"x": 4, "y": 4}]


def test_pods_without_requests_do_not_wait_for_a_share(mooring: Call, write: Call) -> None:
    empty = pods("a", "a-empty", 3).replace("resources: {limits: {nvidia.com/gpu: 1}}", "resources: {}")
    file = write(NODE + queue("a", "{capability: {nvidia.com/gpu: 2}}") + pods("a", "a-full", 4) + empty)

    assert placed(mooring, "-f", file) == [{"a": 5}]


def group(name: str, queue_name: str, minimum: int, extra: str = "") -> str:
    """A gang of pods of one GPU each."""
    members = pods("x", name, minimum).replace(
        "scheduling.volcano.sh/queue-name: x", f"scheduling.k8s.io/group-name: {name}"
    )
    return f"""
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}}}
spec: {{minMember: {minimum}, queue: {queue_name}{extra}}}{members}"""


def test_a_parent_that_names_nothing_deserves_what_its_children_do(mooring: Call, write: Call) -> None:
    teams = "".join(
        queue(name, "{parent: p, deserved: {nvidia.com/gpu: 4}, guarantee: {resource: {nvidia.com/gpu: 1}}}")
        for name in ("pa", "pb")
    )
    file = write(NODE + queue("p", "{}") + teams + pods("pa", "a", 8) + pods("pb", "b", 8))

    assert placed(mooring, "-f", file, "--config", write(policy("{division: Capacity}"), "p.yaml")) == [
        {"a": 4, "b": 4}
    ]


NEEDS = (("large", 3), ("medium", 3), ("small", 2))

CONF = """
actions: "%s"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: %s}]
"""


def test_enqueue_keeps_room_in_the_queue_for_a_group_that_was_let_in_before(mooring: Call, write: Call) -> None:
    needs = ", minResources: {nvidia.com/gpu: %d}"
    taken = pods("x", "x", 4).replace("spec:\n", "spec:\n  nodeName: n\n")
    limited = queue("a", "{capability: {nvidia.com/gpu: 7}}")
    big, small = group("large", "a", 5, needs % 5), group("small", "a", 3, needs % 3)
    file = write(NODE + limited + queue("x", "{reclaimable: false}") + taken + big + small)
    with_enqueue = write(CONF % ("enqueue, allocate, backfill", "capacity"), "with.conf")
    without = write(CONF % ("allocate, backfill", "capacity"), "without.conf")

    assert placed(mooring, "-f", file, "--config", with_enqueue) == [{}]
    assert placed(mooring, "-f", file, "--config", without) == [{"s": 3}]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("{name: nodeorder}", 3),
        ("{name: overcommit}", 1),
        ("{name: overcommit, arguments: {overcommit-factor: 2.0}}", 3),
    ],
    ids=["without it", "by default 1.2 times", "twice"],
)
def test_groups_are_let_in_for_so_many_times_what_there_is(
    mooring: Call, write: Call, option: str, expected: int
) -> None:
    """Somebody in no queue has five of eight GPUs; groups of one pod say that they need three, three and two."""
    taken = pods("x", "x", 5).replace("spec:\n", "spec:\n  nodeName: n\n")
    taken = taken.replace("scheduling.volcano.sh/queue-name: x, ", "")
    groups = "".join(group(name, "a", 1, f", minResources: {{nvidia.com/gpu: {needs}}}") for name, needs in NEEDS)
    conf = (CONF % ("enqueue, allocate", "capacity")).replace("{name: predicates}", option)

    file = write(NODE + queue("a", "{weight: 1}") + taken + groups)

    assert sum(placed(mooring, "-f", file, "--config", write(conf, "volcano-scheduler.conf"))[0].values()) == expected


def test_volcanos_configuration_selects_what_it_names(mooring: Call, write: Call) -> None:
    specs = {"a": "{weight: 1, deserved: {nvidia.com/gpu: 6}}", "b": "{weight: 1, deserved: {nvidia.com/gpu: 2}}"}
    file = write(NODE + "".join(queue(name, spec) + pods(name, name, 8) for name, spec in specs.items()))
    proportion = write(CONF % ("allocate", "proportion"), "proportion.conf")
    capacity = write(CONF % ("allocate", "capacity"), "capacity.conf")
    wrapped = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap}\ndata:\n"
    in_map = wrapped + "  volcano-scheduler.conf: |\n" + (CONF % ("allocate", "capacity")).replace("\n", "\n    ")

    assert placed(mooring, "-f", file, "--config", proportion) == [{"a": 4, "b": 4}]
    assert placed(mooring, "-f", file, "--config", capacity) == [{"a": 6, "b": 2}]
    assert placed(mooring, "-f", file, "--config", write(in_map, "map.yaml")) == [{"a": 6, "b": 2}]


def test_only_the_actions_that_are_named_run(mooring: Call, write: Call) -> None:
    empty = pods("a", "e", 2).replace("resources: {limits: {nvidia.com/gpu: 1}}", "resources: {}")
    file = write(NODE + queue("a", "{weight: 1}") + empty)

    assert placed(mooring, "-f", file, "--config", write(CONF % ("allocate, backfill", "proportion"), "b.conf")) == [
        {"e": 2}
    ]
    assert placed(mooring, "-f", file, "--config", write(CONF % ("allocate", "proportion"), "none.conf")) == [{}]


def test_reclaim_runs_where_volcanos_configuration_names_it(mooring: Call, write: Call) -> None:
    held = pods("a", "a", 8).replace("spec:\n", "spec:\n  nodeName: n\n")
    file = write(TWO_QUEUES + held + pods("b", "b", 4))

    def evicted(actions: str) -> int:
        conf = write(CONF % (actions, "proportion"), "volcano-scheduler.conf")
        outcome = mooring("schedule", "-q", "-o", "json", "-f", file, "--config", conf)
        return len(json.loads(outcome.out).get("evicted", ()))

    assert evicted("enqueue, allocate, backfill") == 0
    assert evicted("enqueue, allocate, backfill, reclaim") == 4


def test_plugins_that_are_unknown_or_not_used_are_said_in_one_line_each(mooring: Call, write: Call) -> None:
    conf = (CONF % ("allocate", "proportion")).replace("{name: predicates}", "{name: binpack}, {name: magic}")
    outcome = mooring("schedule", "-f", write(NODE), "--config", write(conf, "volcano-scheduler.conf"))

    assert outcome.err.splitlines()[-2:] == [
        "volcano-scheduler.conf: not used here: binpack",
        "volcano-scheduler.conf: unknown plugins: magic",
    ]


def test_what_makes_no_sense_in_volcanos_configuration_is_refused(mooring: Call, write: Call) -> None:
    for conf, field in ((CONF % ("allocat", "drf"), "actions"), (CONF % ("enqueue", "drf"), "actions")):
        outcome = mooring("schedule", "-f", write(NODE), "--config", write(conf, "volcano-scheduler.conf"))
        assert outcome.code == 2
        assert f"volcano-scheduler.conf: {field}: expected" in outcome.err


def test_reclaim_for_several_pods_evicts_no_more_than_they_need(mooring: Call, write: Call) -> None:
    held = pods("a", "a", 8).replace("spec:\n", "spec:\n  nodeName: n\n")
    specs = queue("a", "{deserved: {nvidia.com/gpu: 1}}") + queue("b", "{deserved: {nvidia.com/gpu: 3}}")
    file = write(NODE + specs + held + pods("b", "b", 3))
    capacity = write(policy("{division: Capacity}"), "policy.yaml")

    outcome = mooring("schedule", "-q", "-o", "json", "-f", file, "--config", capacity)

    evicted = [found["pod"] for found in json.loads(outcome.out)["evicted"]]
    assert evicted == ["a-7", "a-6", "a-5"]


def in_hierarchy(name: str, path: str, weights: str) -> str:
    marks = f"volcano.sh/hierarchy: {path}, volcano.sh/hierarchy-weights: {weights}"
    return queue(name, "{weight: 1}").replace(f"{{name: {name}}}", f"{{name: {name}, annotations: {{{marks}}}}}")


@pytest.mark.parametrize(
    "by_conf", [False, True], ids=["hierarchical of a TenantPolicy", "enableHierarchy of Volcano's configuration"]
)
def test_departments_count_with_what_their_teams_hold(mooring: Call, write: Call, by_conf: bool) -> None:
    queues = in_hierarchy("s", "root/sci", "1/1") + in_hierarchy("d", "root/eng/dev", "1/1/1")
    queues += in_hierarchy("p", "root/eng/prod", "1/1/1")
    file = write(NODE + queues + "".join(pods(name, name, 8) for name in ("s", "d", "p")))
    flat, tree = policy("{division: Capacity}"), policy("{division: Capacity, hierarchical: true}")
    if by_conf:
        flat = CONF % ("allocate", "capacity")
        tree = flat.replace("{name: drf}", "{name: drf, enableHierarchy: true}")

    assert placed(mooring, "-f", file, "--config", write(tree, "tree.yaml")) == [{"s": 4, "d": 2, "p": 2}]
    assert placed(mooring, "-f", file, "--config", write(flat, "flat.yaml")) != [{"s": 4, "d": 2, "p": 2}]


def of_group(name: str, resources: str) -> str:
    members = pods("q", name, 4).replace("resources: {limits: {nvidia.com/gpu: 1}}", f"resources: {resources}")
    members = members.replace("annotations: {", f"annotations: {{scheduling.k8s.io/group-name: {name}, ")
    group = "\n---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"
    return f"{group}metadata: {{name: {name}}}\nspec: {{minMember: 1, queue: q}}{members}"


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("{}", {"g": 2, "c": 2}), ("{nvidia.com/gpu: 10}", {"g": 1, "c": 3})],
    ids=["a quarter of the places for pods counts most", "a GPU counts ten times"],
)
def test_resources_can_weigh_more_in_dominant_shares(
    mooring: Call, write: Call, weights: str, expected: dict[str, int]
) -> None:
    work = of_group("g", "{limits: {nvidia.com/gpu: 1}}") + of_group("c", "{requests: {cpu: 16}}")
    file = write(NODE.replace("pods: 110", "pods: 4") + queue("q", "{weight: 1}") + work)
    weighed = policy(f"{{division: Capacity, resourceWeights: {weights}}}")

    assert placed(mooring, "-f", file, "--config", write(weighed, "policy.yaml")) == [expected]


@pytest.mark.parametrize(("stays", "expected"), [("true", {"a": 4}), ("false", {"a": 8})])
def test_a_queue_stops_at_what_it_deserves_or_goes_on_while_others_cannot_use_theirs(
    mooring: Call, write: Call, stays: str, expected: dict[str, int]
) -> None:
    nowhere = pods("b", "b", 8).replace("spec:\n", "spec:\n  nodeSelector: {never: there}\n")
    file = write(TWO_QUEUES + pods("a", "a", 8) + nowhere)
    config = write(policy(f"{{staysWithinDeserved: {stays}}}"), "policy.yaml")

    assert placed(mooring, "-f", file, "--config", config) == [expected]


@pytest.mark.parametrize(("ordered", "expected"), [("true", {"n": 2}), ("false", {"n": 1, "o": 1})])
def test_jobs_go_by_dominant_share_unless_drf_does_not_order_them(
    mooring: Call, write: Call, ordered: str, expected: dict[str, int]
) -> None:
    """The older job holds six of eight GPUs and wants more; the younger holds nothing, and needs one to be whole."""
    group = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}, creationTimestamp: "2026-03-02T0{hour}:00:00Z"}}
spec: {{minMember: 1, queue: a}}"""
    named = "annotations: {{scheduling.k8s.io/group-name: {0}, scheduling.volcano.sh/queue-name: a,"
    running = pods("a", "old", 6).replace("spec:\n", "spec:\n  nodeName: n\n", 1)
    jobs = [
        pods("a", name, 4).replace("annotations: {scheduling.volcano.sh/queue-name: a,", named.format(of))
        for name, of in (("old-more", "old"), ("new", "new"))
    ]
    running = running.replace("annotations: {scheduling.volcano.sh/queue-name: a,", named.format("old"))
    conf = f'actions: "allocate"\ntiers:\n- plugins: [{{name: gang}}, {{name: drf, enableJobOrder: {ordered}}}]\n'
    groups = group.format(name="old", hour=1) + group.format(name="new", hour=2)
    file = write(NODE + queue("a", "{weight: 1}") + groups + running + "".join(jobs))

    assert placed(mooring, "-f", file, "--config", write(conf, "volcano-scheduler.conf")) == [expected]
