"""What a TenantPolicy says changes what is decided: every setting, through the commands."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}"""
LENDS = "\n  cohortName: all"
TAKES_BACK = LENDS + "\n  preemption: {reclaimWithinCohort: Any}"
NOTHING = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}"
CLASSES = "".join(
    "\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass"
    f"\nmetadata: {{name: p{value}}}\nvalue: {value}"
    for value in (1, 9)
)


def queue(name: str, cpu: int, more: str = TAKES_BACK) -> str:
    quota = f"flavors: [{{name: any, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}]"
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
  resourceGroups: [{{coveredResources: [cpu], {quota}}}]{more}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: default}}
spec: {{clusterQueue: {name}}}"""


def job(name: str, in_queue: str, cpu: int = 1, *, labels: str = "", meta: str = "") -> str:
    container = f"{{name: c, image: x, resources: {{requests: {{cpu: {cpu}}}}}}}"
    return f"""
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: {in_queue}{labels}}}{meta}}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: [{container}]}}}}}}"""


def policy(text: str) -> str:
    return f"apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\n{text}\n"


@pytest.fixture
def story(mooring: Call, write: Call) -> Call:
    """What each step decides: the jobs that get quota, the jobs that lose it, and those that are told they will."""

    def tell(
        config: str, *texts: str, after: str = "1m", now: str = "2026-03-02T00:00:00Z"
    ) -> list[tuple[list[str], ...]]:
        files = [write(text, f"{number}.yaml") for number, text in enumerate([*texts, NOTHING])]
        then = [word for file in files[1:] for word in ("--then", f"{after}:{file}")]
        options = ("--now", now, "--config", write(config, "policy.yaml"))
        outcome = mooring("schedule", "-q", "-o", "json", "-f", files[0], *then, *options)
        assert (outcome.code, outcome.err) == (0, "")
        results = [step["result"] for step in json.loads(outcome.out)["steps"]]
        parts = ("admitted", "suspended", "notices")
        return [
            tuple([found["owner"].removeprefix("Job/") for found in result[part]] for part in parts)
            for result in results
        ]

    return tell


@pytest.mark.parametrize(("holds", "first"), [("false", "newcomer"), ("true", "preemptor")])
def test_what_preemption_frees_can_be_held_for_whom_it_was_freed(story: Call, holds: str, first: str) -> None:
    """Three queues borrow from a fourth; somebody still more important comes while one of them makes another go."""
    borrows = "\n  cohortName: all\n  preemption: {reclaimWithinCohort: LowerPriority,"
    borrows += " borrowWithinCohort: {policy: LowerPriority}}"
    queues = queue("lender", 10, LENDS) + queue("left", 0, borrows) + queue("middle", 0, LENDS)
    there = NODE + CLASSES + queues + queue("right", 0, LENDS) + job("victim", "middle", 10)
    urgent = job("preemptor", "left", 10, labels=", kueue.x-k8s.io/priority-class: p1")
    newcomer = job("newcomer", "right", 2, labels=", kueue.x-k8s.io/priority-class: p9")

    _, second, _ = story(policy(f"holdFreedRoom: {holds}"), there, (urgent + newcomer).lstrip("\n-"))

    admitted, suspended, _ = second
    assert (admitted[0], suspended) == (first, ["victim"])


@pytest.mark.parametrize(
    ("check", "annotation", "expected"),
    [("Never", "true", 1), ("OnRequest", "true", 0), ("OnRequest", "false", 1), ("Always", "false", 0)],
)
def test_placement_is_checked_of_those_whom_the_policy_means(
    story: Call, check: str, annotation: str, expected: int
) -> None:
    asks = f', annotations: {{mooring.dev/check-placement: "{annotation}"}}'
    wide = job("wide", "q", 80, meta=asks)

    first, *_ = story(policy(f"checkPlacement: {check}"), NODE + queue("q", 100) + wide)

    assert len(first[0]) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, [1, 0]), (90, [0, 1]), (3600, [0, 0])])
def test_who_was_just_admitted_is_spared(story: Call, seconds: int, expected: list[int]) -> None:
    there = NODE + queue("own", 4) + queue("other", 0) + job("borrower", "other", 4)
    config = policy(f"minimumRuntimeBeforeReclaimSeconds: {seconds}")

    _, second, third = story(config, there, job("owner", "own", 4).lstrip("\n-"))

    assert [len(second[1]), len(third[1])] == expected


@pytest.mark.parametrize(("half_life", "expected"), [(0, "again"), (36000, "other")])
def test_who_borrowed_much_in_the_past_comes_later(story: Call, half_life: int, expected: str) -> None:
    fair = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n---\n"
    queues = queue("lender", 4, LENDS) + queue("a", 0, LENDS) + queue("b", 0, LENDS)
    done = '\nstatus: {conditions: [{type: Complete, status: "True"}], succeeded: 1}'
    ended = job("first", "a", 4) + done
    then = ended + job("again", "a", 4) + job("other", "b", 4)

    _, second, _ = story(
        fair + policy(f"usageHalfLifeSeconds: {half_life}"),
        NODE + queues + job("first", "a", 4),
        then.lstrip("\n-"),
        after="2h",
    )

    assert second[0] == [expected]


# Quota windows.

WINDOW = "quotaWindows: [{{queue: {queue}, flavor: any, resource: cpu, from: '08:00', to: '20:00', {more}}}]"


def window(more: str, queue: str = "q") -> str:
    return policy(WINDOW.format(queue=queue, more=more))


@pytest.mark.parametrize(
    ("now", "more", "expected"),
    [
        ("2026-03-02T07:00:00Z", "nominalQuota: 0", 1),
        ("2026-03-02T12:00:00Z", "nominalQuota: 0", 0),
        ("2026-03-02T20:00:00Z", "nominalQuota: 0", 1),
        ("2026-03-02T12:00:00Z", "nominalQuota: 4", 1),
        ("2026-03-02T12:00:00Z", "nominalQuota: 0, days: [Mon]", 0),
        ("2026-03-02T12:00:00Z", "nominalQuota: 0, days: [Tue]", 1),
        ("2026-03-02T07:30:00Z", "nominalQuota: 0, timeZone: Europe/Berlin", 0),
        ("2026-03-02T19:30:00Z", "nominalQuota: 0, timeZone: Europe/Berlin", 1),
    ],
    ids=["before", "open", "over", "as large", "on Monday", "not on Monday", "8:30 in Berlin", "20:30 in Berlin"],
)
def test_a_window_gives_other_quota_at_its_times(story: Call, now: str, more: str, expected: int) -> None:
    first, *_ = story(window(more), NODE + queue("q", 4) + job("work", "q", 4), now=now)

    assert len(first[0]) == expected


@pytest.mark.parametrize(
    ("of", "more", "expected"),
    [
        ("q", "lendingLimit: 4", ["work"]),
        ("q", "lendingLimit: 0", []),
        ("other", "borrowingLimit: 4", ["work"]),
        ("other", "borrowingLimit: 0", []),
    ],
)
def test_a_window_may_limit_what_is_lent_or_borrowed(story: Call, of: str, more: str, expected: list[str]) -> None:
    there = NODE + queue("q", 4) + queue("other", 0) + job("work", "other", 4)

    first, *_ = story(window(more, of), there, now="2026-03-02T12:00:00Z")

    assert first[0] == expected


@pytest.mark.parametrize(("evict", "expected"), [("IfWanted", []), ("Always", ["work"])])
def test_what_a_window_takes_goes_at_once_or_when_it_is_wanted(story: Call, evict: str, expected: list[str]) -> None:
    there = NODE + queue("q", 4) + job("work", "q", 4)

    _, in_the_window, *_ = story(window(f"nominalQuota: 0, evict: {evict}"), there, NOTHING, after="9h")

    assert in_the_window[1] == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, []), (7200, ["work"])])
def test_who_will_lose_quota_is_told_as_long_before_as_the_window_says(
    story: Call, seconds: int, expected: list[str]
) -> None:
    there = NODE + queue("q", 4) + job("work", "q", 4)
    config = window(f"nominalQuota: 0, evict: Always, noticeSeconds: {seconds}")

    first, before, _ = story(config, there, NOTHING, after="3h30m")

    assert (first[2], before[2]) == ([], [])
    _, before, _ = story(config, there, NOTHING, after="7h")
    assert before[2] == expected


def test_a_field_that_has_to_be_there_is_asked_for_by_its_name(mooring: Call, write: Call) -> None:
    policy = write("apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\nquotaWindows: [{}]\n", "policy.yaml")

    outcome = mooring("schedule", "-f", write(NODE), "--config", policy)

    assert (outcome.code, outcome.err) == (
        2,
        f"error: {policy}: quotaWindows[0].queue: expected a value, found none\n",
    )
