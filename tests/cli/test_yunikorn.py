"""YuniKorn's queues.yaml as people try it: a configuration and manifests in, placements out."""

import pytest
from queue_manifests import NODE, Call, placed, shown_queues, told

YUNIKORN = """
partitions:
- name: default
  placementrules: [{name: provided}, {name: tag, value: namespace}]
  queues:
  - name: root
    queues:
    - {name: a, resources: %s}
    - {name: b, resources: %s}
    - name: p
      resources: {max: {nvidia.com/gpu: 3}}
      queues: [{name: c}]
"""


def yunikorn_pods(name: str, queue: str, count: int, spec: str = "", namespace: str = "default") -> str:
    named = f", queue: {queue}" if queue else ""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  namespace: {namespace}
  labels: {{applicationId: app-{name}{named}}}
  annotations: {{mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]{spec}"""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("{guaranteed: {nvidia.com/gpu: 6}}", "{guaranteed: {nvidia.com/gpu: 2}}", {"a": 6, "b": 2}),
        ("{max: {nvidia.com/gpu: 2}}", "{}", {"a": 2, "b": 6}),
        ("{}", "{}", {"a": 4, "b": 4}),
    ],
    ids=["guaranteed", "max", "nothing"],
)
def test_yunikorns_queues_share_by_guarantee_and_stay_within_max(
    mooring: Call, write: Call, one: str, other: str, expected: dict[str, int]
) -> None:
    file = write(NODE + yunikorn_pods("a", "root.a", 8) + yunikorn_pods("b", "root.b", 8))
    queues = write(YUNIKORN % (one, other), "queues.yaml")
    in_map = "kind: ConfigMap\nmetadata: {name: yunikorn-configs}\ndata:\n  queues.yaml: |"
    wrapped = write(in_map + (YUNIKORN % (one, other)).replace("\n", "\n    "), "map.yaml")

    alone = write("queues.yaml: |" + (YUNIKORN % (one, other)).replace("\n", "\n  "), "alone.yaml")

    assert placed(mooring, "-f", file, "--config", queues) == expected
    assert placed(mooring, "-f", file, "--config", wrapped) == expected
    assert placed(mooring, "-f", file, "--config", alone) == expected


def test_yunikorns_parents_limit_their_children_and_rules_find_queues(mooring: Call, write: Call) -> None:
    queues = write(YUNIKORN % ("{max: {nvidia.com/gpu: 1}}", "{}"), "queues.yaml")
    below = write(NODE + yunikorn_pods("c", "root.p.c", 8), "below.yaml")
    tagged = write(NODE + yunikorn_pods("t", "", 8, namespace="a"), "tagged.yaml")

    assert placed(mooring, "-f", below, "--config", queues) == {"c": 3}
    assert placed(mooring, "-f", tagged, "--config", queues) == {"t": 1}


def test_a_name_with_dots_is_one_name_unless_it_begins_at_the_root(mooring: Call, write: Call) -> None:
    queues = write((YUNIKORN % ("{}", "{}")).replace(", {name: tag, value: namespace}", ""), "queues.yaml")

    (waiting,) = told(mooring, "-f", write(NODE + yunikorn_pods("c", "p.c", 1)), "--config", queues)["waiting"]

    found = "no placement rule finds a queue for application app-c of user nobody, which asks for p.c"
    expected = f"{found} (annotation yunikorn.apache.org/user.info says who submits it)"
    assert waiting["message"] == expected


def running(name: str, queue: str, count: int, spec: str = "") -> str:
    return yunikorn_pods(name, queue, count, f"\n  nodeName: n{spec}")


def evicted(mooring: Call, *arguments: object) -> int:
    """How many pods had to go within a minute."""
    steps = told(mooring, *arguments)["steps"]
    return sum(len(step["result"].get("evicted", ())) for step in steps)


@pytest.fixture
def later(write: Call) -> str:
    """A step in which nothing happens: a minute passes."""
    return str(write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml"))


def test_what_is_guaranteed_comes_back_after_a_while(mooring: Call, write: Call, later: str) -> None:
    file = write(NODE + running("a", "root.a", 8) + yunikorn_pods("b", "root.b", 4))
    queues = write(YUNIKORN % ("{}", "{guaranteed: {nvidia.com/gpu: 3}}"), "queues.yaml")

    at_once = told(mooring, "-f", file, "--config", queues)

    assert at_once.get("evicted", []) == []
    assert at_once["waiting"][0]["message"] == (
        "the cluster has 8 nvidia.com/gpu, 8 of it held; 1 more asked for;"
        " what others hold beyond their shares is taken for it once it has waited for 30 s"
    )
    assert evicted(mooring, "-f", file, "--then", later, "--config", queues) == 3


TREE = """
partitions:
- name: default
  preemption: {{enabled: {enabled}}}
  queues:
  - name: root
    queues:
    - name: a
      properties: {a}
      queues: [{{name: x, properties: {x}}}, {{name: y}}]
    - {{name: b, resources: {{guaranteed: {{nvidia.com/gpu: 3}}}}, properties: {b}}}
"""


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, 3),
        ({"b": "{preemption.delay: 10m}"}, 0),
        ({"b": "{preemption.policy: fence}"}, 0),
        ({"a": "{preemption.policy: fence}"}, 3),
        ({"a": "{preemption.policy: disabled}"}, 0),
        ({"enabled": "false"}, 0),
        ({"x": "{priority.offset: 100}"}, 0),
        ({"x": "{priority.offset: 100}", "b": "{priority.offset: 100}"}, 3),
        ({"x": "{priority.offset: 100, priority.policy: fence}"}, 0),
        ({"x": "{priority.offset: -100, priority.policy: fence}"}, 3),
    ],
    ids=[
        "by default",
        "a longer delay",
        "a fence around the one that wants it back",
        "a fence around those that hold it",
        "none in a and all below it",
        "none at all",
        "an offset makes what runs more important",
        "an offset on both sides",
        "a fence with a high priority",
        "a fence with a low one",
    ],
)
def test_properties_say_who_gives_back(
    mooring: Call, write: Call, later: str, properties: dict[str, str], expected: int
) -> None:
    file = write(NODE + running("a", "root.a.x", 8) + yunikorn_pods("b", "root.b", 3))
    given = {"enabled": "true", "a": "{}", "b": "{}", "x": "{}", **properties}
    queues = write(TREE.format(**given), "queues.yaml")

    assert evicted(mooring, "-f", file, "--then", later, "--config", queues) == expected


AGED, NEW = (f'metadata:\n  creationTimestamp: "2026-03-02T{hour}:00:00Z"' for hour in (10, 11))

CLASS = """
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 50"""


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("{}", "{}", {"b": 8}),
        ("{priority.offset: 60}", "{}", {"a": 8}),
        ("{}", "{priority.offset: -10, priority.policy: fence}", {"a": 8}),
    ],
    ids=["by what waits in them", "with an offset", "with a fence"],
)
def test_more_important_queues_come_first(mooring: Call, write: Call, a: str, b: str, expected: dict[str, int]) -> None:
    urgent = yunikorn_pods("b", "root.b", 8, "\n  priorityClassName: urgent")
    file = write(NODE + CLASS + yunikorn_pods("a", "root.a.x", 8) + urgent)
    queues = write(TREE.format(enabled="true", a=a, b=b, x="{}"), "queues.yaml")

    assert placed(mooring, "-f", file, "--config", queues) == expected


def test_priority_can_be_left_out_of_the_order_of_applications(mooring: Call, write: Call) -> None:
    urgent = yunikorn_pods("z", "root.a", 8, "\n  priorityClassName: urgent")
    aged = yunikorn_pods("x", "root.a", 8).replace("metadata:", AGED)
    file = write(NODE + CLASS + aged + urgent.replace("metadata:", NEW))
    queues = YUNIKORN % ("{}", "{}")
    by_age = queues.replace("{name: a,", "{name: a, properties: {application.sort.priority: disabled},")

    assert placed(mooring, "-f", file, "--config", write(queues, "q.yaml")) == {"z": 8}
    assert placed(mooring, "-f", file, "--config", write(by_age, "p.yaml")) == {"x": 8}


def of_user(pods: str, user: str, *groups: str) -> str:
    named = ", ".join(f'\\"{group}\\"' for group in groups)
    info = f'yunikorn.apache.org/user.info: "{{\\"user\\": \\"{user}\\", \\"groups\\": [{named}]}}"'
    return pods.replace("annotations: {", f"annotations: {{{info}, ")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ("[]", {"x": 4, "y": 4}),
        ("[{users: [ann], maxresources: {nvidia.com/gpu: 1}}]", {"x": 1, "y": 4}),
        ("[{users: ['*'], maxresources: {nvidia.com/gpu: 2}}]", {"x": 2, "y": 2}),
        (
            "[{users: [ann], maxresources: {nvidia.com/gpu: 3}}, {users: ['*'], maxresources: {nvidia.com/gpu: 2}}]",
            {"x": 3, "y": 2},
        ),
        ("[{groups: [dev], maxresources: {nvidia.com/gpu: 5}}]", {"x": 4, "y": 1}),
        ("[{groups: [ops], maxresources: {nvidia.com/gpu: 1}}]", {"x": 4, "y": 4}),
        ("[{users: ['*'], maxapplications: 1}]", {"x": 4, "y": 4}),
        ("[{groups: [dev], maxapplications: 1}]", {"x": 4}),
    ],
    ids=["none", "a user's", "each user's", "the others'", "a group's", "another's", "applications", "of a group"],
)
def test_users_and_groups_have_limits(mooring: Call, write: Call, limits: str, expected: dict[str, int]) -> None:
    one = of_user(yunikorn_pods("x", "root.a", 4), "ann", "dev")
    other = of_user(yunikorn_pods("y", "root.a", 4), "bob", "dev")
    queues = YUNIKORN % ("{}", "{}")
    in_queue = write(queues.replace("{name: a,", f"{{name: a, limits: {limits},"), "queue.yaml")
    of_all = write(queues.replace("- name: default", f"- name: default\n  limits: {limits}"), "partition.yaml")

    assert placed(mooring, "-f", write(NODE + one + other), "--config", in_queue) == expected
    assert placed(mooring, "-f", write(NODE + one + other), "--config", of_all) == expected


def test_a_limit_is_said_with_what_the_user_holds(mooring: Call, write: Call) -> None:
    limit = "limits: [{users: [ann], maxresources: {nvidia.com/gpu: 1}}]"
    queues = (YUNIKORN % ("{}", "{}")).replace("{name: a,", f"{{name: a, {limit},")
    file = write(NODE + of_user(yunikorn_pods("x", "root.a", 2), "ann"))

    (waiting,) = told(mooring, "-f", file, "--config", write(queues, "queues.yaml"))["waiting"]

    message = "user ann may hold 1 nvidia.com/gpu in queue root.a and holds 1; 1 more asked for"
    assert waiting["message"] == message


@pytest.mark.parametrize(
    ("rules", "queue"),
    [
        ("[{name: provided}]", "root.default"),
        ("[{name: provided, create: true}]", "root.new"),
        ("[{name: provided, create: true, parent: {name: fixed, value: p}}]", "root.p.new"),
        ("[{name: user, create: true}]", "root.ann"),
        ("[{name: user, create: true, parent: {name: tag, value: namespace, create: true}}]", "root.ns.ann"),
        ("[{name: user, create: true, filter: {users: [bob]}}, {name: fixed, value: p.c}]", "root.p.c"),
        ("[{name: user, create: true, filter: {type: deny, groups: [d.*]}}, {name: fixed, value: p.c}]", "root.p.c"),
        ("[{name: user, create: true, filter: {users: [a.*]}}, {name: fixed, value: p.c}]", "root.ann"),
        ("[{name: fixed, value: closed}, {name: fixed, value: p.c}]", "root.p.c"),
    ],
)
def test_placement_rules_find_queues_and_create_them(mooring: Call, write: Call, rules: str, queue: str) -> None:
    text = f"""
partitions:
- name: default
  placementrules: {rules}
  queues:
  - name: root
    queues: [{{name: default}}, {{name: closed, submitacl: bob}}, {{name: p, parent: true, queues: [{{name: c}}]}}]
"""
    file = write(NODE + of_user(yunikorn_pods("x", "new", 1, namespace="ns"), "ann", "dev"))

    found = shown_queues(mooring, "-f", file, "--config", write(text, "queues.yaml"))

    assert [name for _, name, *_, pods, _ in found if pods and not name.endswith(("root.p", "root.ns"))] == [queue]


@pytest.mark.parametrize("acl", ["submitacl", "adminacl"])
@pytest.mark.parametrize(("user", "groups", "expected"), [("ann", (), 1), ("bob", (), 0), ("bob", ("dev",), 1)])
def test_only_those_with_access_submit_to_a_queue(
    mooring: Call, write: Call, acl: str, user: str, groups: tuple[str, ...], expected: int
) -> None:
    queues = (YUNIKORN % ("{}", "{}")).replace("{name: a,", f'{{name: a, {acl}: "ann,eve dev",')
    file = write(NODE + of_user(yunikorn_pods("x", "root.a", 1), user, *groups))

    assert len(placed(mooring, "-f", file, "--config", write(queues, "queues.yaml"))) == expected


def test_queues_that_are_created_are_like_the_template(mooring: Call, write: Call) -> None:
    text = """
partitions:
- name: default
  placementrules: [{name: tag, value: namespace, create: true, parent: {name: fixed, value: teams}}]
  queues:
  - name: root
    queues:
    - {name: teams, parent: true, childtemplate: {maxapplications: 1, resources: {max: {nvidia.com/gpu: 2}}}}
"""
    pods = "".join(yunikorn_pods(name, "", 3, namespace=space) for name, space in (("x", "n"), ("y", "n"), ("z", "m")))
    first = write(NODE + yunikorn_pods("x", "", 3, namespace="n"), "first.yaml")
    then = write(pods.replace("---", "", 1), "then.yaml")
    config = write(text, "queues.yaml")

    assert placed(mooring, "-f", write(NODE + pods), "--config", config) == {"x": 2, "z": 2}
    steps = told(mooring, "-f", first, "--then", then, "--config", config)["steps"]
    assert [len(step["result"]["placements"]) for step in steps] == [2, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- name: other\n- name: default", "partition other, as all nodes are in default"),
        ("- name: default\n  usergroupresolver: {type: os}", "usergroupresolver"),
        ("- name: default\n  preemption: {quotapreemptionenabled: true}", "quotapreemptionenabled"),
        ("- name: default\n  queues: [{name: root, properties: {no.such: 1}}]", "no.such"),
        ("- name: default\n  placementrules: [{name: tag, value: team}]", "tag team of placement rules"),
    ],
)
def test_what_of_queues_yaml_is_not_used_is_said(mooring: Call, write: Call, text: str, expected: str) -> None:
    outcome = mooring("schedule", "-f", write(NODE), "--config", write(f"partitions:\n{text}", "queues.yaml"))

    assert outcome.err == f"queues.yaml: not used here: {expected}\n"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("queues: [{name: a, maxaplications: 1}]", "queues[0].maxaplications"),
        ("queues: [{name: a, properties: {preemption.policy: maybe}}]", "queues[0].properties.preemption.policy"),
        ("queues: [{name: a, properties: {priority.offset: high}}]", "queues[0].properties.priority.offset"),
        ("queues: [{name: a, properties: {preemption.delay: soon}}]", "queues[0].properties.preemption.delay"),
        ("queues: [{name: a, limits: [{maxapplications: 1}]}]", "queues[0].limits[0]"),
        ("limits: [{users: [a]}]", "limits[0]"),
        ("nodesortpolicy: {type: random}", "nodesortpolicy.type"),
        ("nodesortpolicy: {resourceweights: {vcore: -1}}", "nodesortpolicy.resourceweights.vcore"),
        ("limits: [{users: [a, a], maxapplications: 1}]", "limits[0].users"),
        ("placementrules: [{name: fixed}]", "placementrules[0].value"),
        ("placementrules: [{name: user, filter: {users: ['(']}}]", "placementrules[0].filter.users"),
    ],
)
def test_what_makes_no_sense_in_queues_yaml_is_refused(mooring: Call, write: Call, text: str, field: str) -> None:
    file = write(f"partitions: [{{name: default, {text}}}]", "queues.yaml")
    outcome = mooring("schedule", "-f", write(NODE), "--config", file)

    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {file}: partitions[0].{field}: expected ")


def task_group_pods(name: str, group: str, count: int, groups: str) -> str:
    """Pods of one application, each a document of its own."""
    more = f"yunikorn.apache.org/task-group-name: {group}, yunikorn.apache.org/task-groups: '{groups}'"
    pod = yunikorn_pods(name, "root.a", 1).replace(f"applicationId: app-{name}", "applicationId: app")
    pod = pod.replace('mooring.dev/replicas: "1"', more)
    return "".join(pod.replace("{i}", str(index)) for index in range(count))


def test_task_groups_start_together_or_not_at_all(mooring: Call, write: Call) -> None:
    groups = '[{"name": "workers", "minMember": 4, "minResource": {"nvidia.com/gpu": 1}}]'
    workers = task_group_pods("w", "workers", 4, groups)
    queues = write(YUNIKORN % ("{}", "{}"), "queues.yaml")

    assert placed(mooring, "-f", write(NODE + running("x", "root.b", 4) + workers), "--config", queues) == {"w": 4}
    assert placed(mooring, "-f", write(NODE + running("x", "root.b", 5) + workers), "--config", queues) == {}


def test_a_driver_starts_if_there_is_room_for_those_it_is_to_create(mooring: Call, write: Call) -> None:
    groups = '[{"name": "driver", "minMember": 1}, {"name": "executors", "minMember": %d, "minResource": {"%s": "1"}}]'
    driver = task_group_pods("d", "driver", 1, groups % (7, "nvidia.com/gpu"))
    many = task_group_pods("d", "driver", 1, groups % (9, "nvidia.com/gpu"))
    queues = write(YUNIKORN % ("{}", "{}"), "queues.yaml")

    assert placed(mooring, "-f", write(NODE + driver), "--config", queues) == {"d": 1}
    assert placed(mooring, "-f", write(NODE + many), "--config", queues) == {}


def test_task_groups_that_cannot_be_read_are_refused(mooring: Call, write: Call) -> None:
    outcome = mooring("schedule", "-f", write(NODE + task_group_pods("w", "workers", 1, "[{}]")))

    assert outcome.code == 2
    assert "metadata.annotations.yunikorn.apache.org/task-groups: expected a list of task groups in JSON" in outcome.err


def test_a_yunikorn_queue_runs_no_more_applications_than_it_may(mooring: Call, write: Call) -> None:
    apps = "".join(yunikorn_pods(name, "root.a", 2) for name in ("x", "y", "z"))
    queues = YUNIKORN % ("{}", "{}")
    limited = queues.replace("{name: a,", "{name: a, maxapplications: 2,")

    assert placed(mooring, "-f", write(NODE + apps), "--config", write(queues, "q.yaml")) == {"x": 2, "y": 2, "z": 2}
    assert placed(mooring, "-f", write(NODE + apps), "--config", write(limited, "l.yaml")) == {"x": 2, "y": 2}


def test_applications_have_their_turns_by_age_or_by_what_they_hold(mooring: Call, write: Call) -> None:
    apps = "".join(yunikorn_pods(name, "root.a", 8) for name in ("x", "y"))
    queues = YUNIKORN % ("{}", "{}")
    fair = queues.replace("{name: a,", "{name: a, properties: {application.sort.policy: fair},")

    assert placed(mooring, "-f", write(NODE + apps), "--config", write(queues, "q.yaml")) == {"x": 8}
    assert placed(mooring, "-f", write(NODE + apps), "--config", write(fair, "f.yaml")) == {"x": 4, "y": 4}


def test_queues_shows_what_yunikorns_queues_deserve_and_hold(mooring: Call, write: Call) -> None:
    file = write(NODE + yunikorn_pods("a", "root.a", 8) + yunikorn_pods("c", "root.p.c", 8))
    config = write(YUNIKORN % ("{guaranteed: {nvidia.com/gpu: 6}}", "{}"), "queues.yaml")
    gpu = "nvidia.com/gpu"

    found = shown_queues(mooring, "-f", file, "--config", config)

    assert found == [
        ("YuniKorn queue", "root.a", "", {gpu: 6}, {gpu: 5}, {}, 5, 3),
        ("YuniKorn queue", "root.b", "", {}, {}, {}, 0, 0),
        ("YuniKorn queue", "root.p", "", {}, {gpu: 3}, {gpu: 3}, 3, 5),
        ("YuniKorn queue", "root.p.c", "root.p", {}, {gpu: 3}, {}, 3, 5),
    ]
    assert shown_queues(mooring, "-f", file, "--config", config, "--queue", "root.a") == found[:1]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("{type: fair}", "b"),
        ("{type: binpacking}", "a"),
        ("{type: fair, resourceweights: {memory: 1}}", "a"),
        ("{type: fair, resourceweights: {memory: 0.1, vcore: 5}}", "b"),
    ],
    ids=["the emptier", "the fuller", "by memory", "mostly by CPUs"],
)
def test_nodes_are_chosen_by_the_nodesortpolicy(mooring: Call, write: Call, policy: str, expected: str) -> None:
    """Node a has most of its CPUs in use, b some of its memory."""
    nodes = "".join(
        f"""
---
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{allocatable: {{cpu: 8, memory: 32Gi, pods: 50}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: on-{name}}}
spec: {{nodeName: {name}, containers: [{{name: c, image: x, resources: {{requests: {{{used}}}}}}}]}}"""
        for name, used in (("a", "cpu: 6"), ("b", "memory: 12Gi"))
    )
    pod = yunikorn_pods("new", "root.a", 1).replace("limits: {nvidia.com/gpu: 1}", "requests: {cpu: 1, memory: 1Gi}")
    queues = (YUNIKORN % ("{}", "{}")).replace("- name: default", f"- name: default\n  nodesortpolicy: {policy}")

    found = told(mooring, "-f", write(nodes + pod), "--config", write(queues, "queues.yaml"))

    assert [each["node"] for each in found["placements"]] == [expected]
