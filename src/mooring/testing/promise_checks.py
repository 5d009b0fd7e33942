"""Checks of what a plugin declares about its answers: the engine keeps and shares answers on the strength of it."""

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Depends, Plugin, PreScore, Reserve, keys_read_by
from mooring.engine.shortcuts import Incremental
from mooring.engine.verdict import Rejection
from mooring.errors import PluginError, UndeclaredRead
from mooring.model.api.pods import Pod
from mooring.model.events import Event, NodeLoadLost, NodeLoadSeen, NodeSeen, ObjectLost, ObjectSeen, PodSeen
from mooring.state.cluster import Cluster
from mooring.state.read_keys import ALL, Keys
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape
from mooring.state.views import PodView
from mooring.testing.answer_checks import fingerprint
from mooring.testing.asking import (
    Prepared,
    another_pod,
    asked_shapes,
    bound,
    can_filter,
    can_score,
    fresh_answers,
    names,
    prepare,
    waiting,
)
from mooring.testing.builders import make_namespace, make_service
from mooring.testing.random_clusters import APPS, Choose, one_of, random_node
from mooring.testing.situations import Situation, random_loads

Changes = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]


def pods_come_and_go(cluster: Cluster, choose: Choose, count: int) -> Changes:
    """Bind and unbind some pods; return what changed, as an Incremental is told of it."""
    start = cluster.pod_changes.position
    rows = cluster.nodes.live_rows()
    for _ in range(count):
        free, taken = waiting(cluster), bound(cluster)
        if free and (choose(3) or not taken):
            cluster.assume(one_of(choose, free).key, int(one_of(choose, rows.tolist())))
        elif taken:
            cluster.release(one_of(choose, taken).key)
    changes = cluster.pod_changes.since(start)
    assert changes is not None
    return changes


def nodes_change(cluster: Cluster, choose: Choose) -> None:
    """Describe some nodes anew: labels, taints, capacity, images, annotations."""
    for row in cluster.nodes.live_rows().tolist():
        if not choose(2):
            cluster.observe(NodeSeen(random_node(choose, cluster.nodes.name(row))))


def related_objects_change(choose: Choose) -> Iterator[Event]:
    """Namespaces get other labels, services come and go."""
    yield ObjectSeen(make_namespace("team-b", labels={"team": one_of(choose, ("a", "c"))}))
    yield ObjectSeen(make_service("new", selector={"app": one_of(choose, APPS)}))
    yield ObjectLost("Service", "default/service-0")
    yield ObjectLost("Namespace", "team-a")


def loads_change(cluster: Cluster, choose: Choose) -> None:
    """Report anew what some nodes use, and nothing more of others."""
    pods = [record.pod for record in bound(cluster)]
    for name in list(cluster.nodes.row_of):
        cluster.observe(NodeLoadLost(name), *map(NodeLoadSeen, random_loads(choose, name, pods)))


# depends_on.


def check_answers_change_only_with_what_it_depends_on(plugin: Plugin, situation: Situation) -> None:
    """After a change that `depends_on` does not name, an answer gathered anew is the one given before."""
    depends, choose = plugin.depends_on, situation.choose()
    if not depends & Depends.NODE:
        _check_unmoved(
            plugin, situation, lambda cluster: nodes_change(cluster, choose), "Depends.NODE", "nodes changed"
        )
    if not depends & Depends.RELATED:
        _check_unmoved(
            plugin,
            situation,
            lambda cluster: cluster.observe(*related_objects_change(choose)),
            "Depends.RELATED",
            "namespaces and services changed",
        )
    if not depends & Depends.NODE_LOAD:
        _check_unmoved(
            plugin, situation, lambda cluster: loads_change(cluster, choose), "Depends.NODE_LOAD", "loads changed"
        )
    if not depends & (Depends.NODE_USAGE | Depends.PODS):
        _check_unmoved(
            plugin,
            situation,
            lambda cluster: pods_come_and_go(cluster, choose, 6),
            "Depends.NODE_USAGE or Depends.PODS",
            "pods came and went",
        )


def _check_unmoved(plugin: Plugin, situation: Situation, change: Any, missing: str, what: str) -> None:
    cluster = situation.cluster(plugin)
    shapes = asked_shapes(cluster)
    before = [fresh_answers(plugin, cluster, shape) for shape in shapes]
    change(cluster)
    for shape, kept in zip(shapes, before, strict=True):
        now = fresh_answers(plugin, cluster, shape)
        assert now == kept, (
            f"{plugin.name} does not declare {missing}, and answers otherwise after {what}:\n"
            f"  before {kept}\n  after  {now}{situation.about(shape)}"
        )


def check_usage_elsewhere_does_not_matter(plugin: Plugin, situation: Situation) -> None:
    """With NODE_USAGE and without PODS, a pod on one node changes the answers for that node only.

    What was gathered before must still do, because the engine asks about the touched rows alone, with that.
    """
    if not plugin.depends_on & (Depends.NODE_USAGE | Depends.NODE_LOAD) or plugin.depends_on & Depends.PODS:
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        kept = prepare(plugin, cluster, shape)
        before = _raw_answers(kept, cluster.rows())
        _, touched, _ = pods_come_and_go(cluster, choose, 3)
        fresh = prepare(plugin, cluster, shape)
        now, with_kept = _raw_answers(fresh, cluster.rows()), _raw_answers(kept, cluster.rows())
        elsewhere = [i for i, row in enumerate(rows.tolist()) if row not in touched]
        for what in before:
            moved = [i for i in elsewhere if before[what][i] != now[what][i]]
            assert not moved, (
                f"{plugin.name}.{what} declares NODE_USAGE without PODS, and its answers for "
                f"{names(cluster, rows[moved])} changed with pods on {names(cluster, np.unique(touched))}"
                f"{situation.about(shape)}"
            )
        if kept.for_filter is SKIP or kept.for_score is SKIP:
            continue
        assert with_kept == now, (
            f"{plugin.name} gathers something that goes out of date when pods come and go, and declares NODE_USAGE "
            f"without PODS:\n  gathered before {with_kept}\n  gathered anew   {now}{situation.about(shape)}"
        )


def _raw_answers(prepared: Prepared, nodes: NodeRows) -> dict[str, list[int]]:
    found = {}
    if can_filter(prepared.plugin):
        found["filter"] = prepared.codes(nodes).tolist()
    if can_score(prepared.plugin):
        raw = prepared.raw(nodes)
        found["score"] = [0] * len(nodes) if raw is None else raw.tolist()
    return found


def check_usage_can_be_supposed(plugin: Plugin, situation: Situation) -> None:
    """With NODE_USAGE and without PODS, asking what would be after k more pods equals asking once they are there.

    The engine supposes usage through NodeRows: a plugin that reads it elsewhere would not see what is supposed.
    """
    if not plugin.depends_on & (Depends.NODE_USAGE | Depends.NODE_LOAD) or plugin.depends_on & Depends.PODS:
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        extra = np.array([choose(4) for _ in rows], np.int64)
        prepared = prepare(plugin, cluster, shape)
        supposed = _raw_answers(prepared, NodeRows(cluster.nodes, rows, extra, shape))
        records = [another_pod(cluster, shape, number) for number in range(int(extra.sum()))]
        with cluster.what_if():
            for record, row in zip(records, np.repeat(rows, extra).tolist(), strict=True):
                cluster.assume(record.key, row)
            real = _raw_answers(prepared, cluster.rows())
        assert supposed == real, (
            f"{plugin.name}: after {extra.tolist()} more pods on {names(cluster, rows)}\n  supposed {supposed}\n"
            f"  real     {real}\n  read usage through the NodeRows that are given{situation.about(shape)}"
        )


def check_a_settled_skip_stands(plugin: Plugin, situation: Situation) -> None:
    """With `skip_is_settled`, pods that come and go do not turn a SKIP into something to say."""
    if not plugin.skip_is_settled:
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    shapes = asked_shapes(cluster)
    before = [prepare(plugin, cluster, shape) for shape in shapes]
    for _ in range(4):
        pods_come_and_go(cluster, choose, 1 + choose(4))
        for shape, kept in zip(shapes, before, strict=True):
            now = prepare(plugin, cluster, shape)
            for what, then, later in (
                ("pre_filter", kept.for_filter, now.for_filter),
                ("pre_score", kept.for_score, now.for_score),
            ):
                assert then is not SKIP or later is SKIP, (
                    f"{plugin.name}.{what} declares skip_is_settled, and no longer skips once pods came and went"
                    f"{situation.about(shape)}"
                )


def check_it_does_not_matter_when_pods_were_seen(plugin: Plugin, situation: Situation) -> None:
    """What a plugin remembers between questions, it remembers rightly: pods of new kinds count as if always known."""
    objects = situation.objects()
    late = [pod for index, pod in enumerate(objects.pods) if pod.spec.node_name and index % 2]
    known = dataclasses.replace(objects, pods=[pod for pod in objects.pods if pod not in late])
    cluster = Situation(situation.seed, lambda choose: known).cluster(plugin)
    for shape in asked_shapes(cluster):
        fresh_answers(plugin, cluster, shape)
    cluster.observe(*map(PodSeen, late))
    all_at_once = situation.cluster(plugin)
    for record in waiting(cluster):
        later = fresh_answers(plugin, cluster, record.shape)
        at_once = fresh_answers(plugin, all_at_once, all_at_once.pods.records[record.key].shape)
        assert later == at_once, (
            f"{plugin.name} answers {later} where some pods were seen after it was first asked, and {at_once} where "
            f"all were seen before{situation.about(record.shape)}"
        )


# What was gathered and follows.


def check_counts_follow_pods(plugin: Plugin, situation: Situation) -> None:
    """Something Incremental, told which pods came and went, answers as if gathered anew."""
    cluster, choose = situation.cluster(plugin), situation.choose()
    shapes = asked_shapes(cluster)
    kept = [prepare(plugin, cluster, shape) for shape in shapes]
    for _ in range(4):
        changes = pods_come_and_go(cluster, choose, 1 + choose(5))
        nodes = cluster.rows()
        for shape, prepared in zip(shapes, kept, strict=True):
            for counts in _incremental(prepared):
                before = _raw_answers(prepared, nodes)
                moved = counts.update(*changes)
                assert moved or _raw_answers(prepared, nodes) == before, (
                    f"{plugin.name}: update() says that nothing changed, and the answers did{situation.about(shape)}"
                )
            fresh = prepare(plugin, cluster, shape)
            for what, old, new in (
                ("filter", prepared.for_filter, fresh.for_filter),
                ("score", prepared.for_score, fresh.for_score),
            ):
                if not isinstance(old, Incremental):
                    continue
                if what == "score":
                    old.refit(nodes)
                assert isinstance(new, Incremental), (
                    f"{plugin.name} gathered something Incremental for {what}, and now {new!r}: what pods do must be "
                    f"in update(), not in what is gathered{situation.about(shape)}"
                )
                followed, anew = _raw_answers(prepared, nodes)[what], _raw_answers(fresh, nodes)[what]
                assert followed == anew, (
                    f"{plugin.name}.{what}: after pods came and went, update() left {followed}, gathering anew gives "
                    f"{anew}{situation.about(shape)}"
                )


def _incremental(prepared: Prepared) -> list[Incremental]:
    found = [part for part in (prepared.for_filter, prepared.for_score) if isinstance(part, Incremental)]
    return list({id(part): part for part in found}.values())


def check_topology_keys_tell_rows_apart(plugin: Plugin, situation: Situation) -> None:
    """Nodes with equal values of an Incremental's topology_keys get equal answers."""
    cluster = situation.cluster(plugin)
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        answers = _raw_answers(prepared, cluster.rows())
        for what, part in (("filter", prepared.for_filter), ("score", prepared.for_score)):
            if not isinstance(part, Incremental):
                continue
            seen: dict[tuple[int, ...], tuple[int, int]] = {}
            for row, answer in zip(rows.tolist(), answers[what], strict=True):
                domain = tuple(int(cluster.nodes.domain_codes(key)[row]) for key in part.topology_keys)
                first, other = seen.setdefault(domain, (answer, row))
                assert first == answer, (
                    f"{plugin.name}.{what} gives {first} for {cluster.nodes.name(other)} and {answer} for "
                    f"{cluster.nodes.name(row)}, which are alike in {part.topology_keys}{situation.about(shape)}"
                )


def check_own_counts_tell_rows_apart(plugin: Plugin, situation: Situation) -> None:
    """Nodes alike in an Incremental's own counts, and in the domains that several nodes share, score the same."""
    cluster = situation.cluster(plugin)
    table, rows = cluster.nodes, cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        part = prepared.for_score
        own = part.own_counts(cluster.rows()) if isinstance(part, Incremental) else None
        if not isinstance(part, Incremental) or own is None:
            continue
        shared = [key for key in part.topology_keys if not table.is_one_row_each(key)]
        seen: dict[tuple[int, ...], tuple[int, int]] = {}
        for at, (row, score) in enumerate(
            zip(rows.tolist(), _raw_answers(prepared, cluster.rows())["score"], strict=True)
        ):
            alike = (*(int(table.label(key).codes[row]) for key in shared), *own[:, at].tolist())
            first, other = seen.setdefault(alike, (score, row))
            assert first == score, (
                f"{plugin.name} scores {table.name(other)} {first} and {table.name(row)} {score}, which are alike in "
                f"{shared} and in own_counts{situation.about(shape)}"
            )


def check_local_counts_are_local(plugin: Plugin, situation: Situation) -> None:
    """While an Incremental says `is_local`, one more pod changes the answers in its own domains only."""
    cluster, choose = situation.cluster(plugin), situation.choose()
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        for what, part in (("filter", prepared.for_filter), ("score", prepared.for_score)):
            if not isinstance(part, Incremental):
                continue
            for number in range(3):
                if not part.is_local:
                    break
                row = int(one_of(choose, rows.tolist()))
                before = _raw_answers(prepared, cluster.rows())[what]
                part.update(np.array([shape.id], np.intp), np.array([row], np.intp), np.ones(1, np.int64))
                after = _raw_answers(prepared, cluster.rows())[what]
                moved = rows[np.array(before) != np.array(after)]
                far = [other for other in moved.tolist() if not _share_a_domain(cluster, part, row, other)]
                assert not far, (
                    f"{plugin.name}.{what} says is_local, and pod {number + 1} on {cluster.nodes.name(row)} changes "
                    f"the answers for {names(cluster, np.array(far))}{situation.about(shape)}"
                )


def _share_a_domain(cluster: Cluster, part: Incremental, one: int, other: int) -> bool:
    labels = [cluster.nodes.domain_codes(key) for key in part.topology_keys]
    return one == other or any(codes[one] == codes[other] and codes[one] >= 0 for codes in labels)


def check_refit_equals_gathering_anew(plugin: Plugin, situation: Situation) -> None:
    """What pre_score gathers depends on the feasible nodes only as `reads_feasible` and `refit` say."""
    if not isinstance(plugin, PreScore):
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        some: Rows = rows[[i for i in range(len(rows)) if choose(2)]]
        if not len(some):
            continue
        nodes = cluster.rows(some)
        fresh = prepare(plugin, cluster, shape, nodes)
        if isinstance(prepared.for_score, Incremental):
            prepared.for_score.refit(nodes)
        elif plugin.reads_feasible:
            continue
        before, now = prepared.final(nodes).tolist(), fresh.final(nodes).tolist()
        assert before == now, (
            f"{plugin.name}: with all nodes feasible {before}, gathered for {names(cluster, some)} {now}; "
            f"declare reads_feasible, or follow in refit(){situation.about(shape)}"
        )


def check_one_row_a_domain_is_enough_to_refit(plugin: Plugin, situation: Situation) -> None:
    """Without `counts_rows`, refitting to one feasible row of each domain comes to the same as to all of them."""
    cluster = situation.cluster(plugin)
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        part = prepared.for_score
        if not isinstance(part, Incremental) or part.counts_rows:
            continue
        domains = [tuple(int(cluster.nodes.domain_codes(key)[row]) for key in part.topology_keys) for row in rows]
        first = [domains.index(domain) for domain in dict.fromkeys(domains)]
        with_all = _raw_answers(prepared, cluster.rows())["score"]
        part.refit(cluster.rows(rows[first]))
        with_few = _raw_answers(prepared, cluster.rows())["score"]
        assert with_few == with_all, (
            f"{plugin.name}: refitted to one node a domain {with_few}, to all {with_all}: declare counts_rows"
            f"{situation.about(shape)}"
        )


# What of a pod is read.


def check_only_declared_parts_are_read(plugin: Plugin, situation: Situation) -> None:
    """With `reads`, pods that are alike in those parts get the same answers."""
    if plugin.reads is None:
        return
    cluster = situation.cluster(plugin, everything=True)
    by_parts: dict[tuple[Any, ...], list[Shape]] = {}
    for shape in asked_shapes(cluster):
        by_parts.setdefault(tuple(shape.part(name) for name in sorted(plugin.reads)), []).append(shape)
    for alike in by_parts.values():
        for one, other in combinations(alike, 2):
            first, second = fresh_answers(plugin, cluster, one), fresh_answers(plugin, cluster, other)
            assert first == second, (
                f"{plugin.name} declares that it reads {sorted(plugin.reads)} of a pod, and answers {first} and "
                f"{second} for pods that are alike in that{situation.about(one)}{situation.about(other)}"
            )


def check_undeclared_labels_and_annotations_are_not_read(plugin: Plugin, situation: Situation) -> None:
    """Labels and annotations besides those in `reads_pod_labels` and `reads_pod_annotations` change nothing."""
    cluster = situation.cluster(plugin)
    for shape in asked_shapes(cluster):
        try:
            fresh_answers(plugin, cluster, shape)
        except PluginError as error:
            if isinstance(error.cause, UndeclaredRead):
                raise AssertionError(f"{error}{situation.about(shape)}") from error
            raise
    declared = keys_read_by([plugin])
    _check_unread(plugin, situation, "labels", declared.labels)
    _check_unread(plugin, situation, "annotations", declared.annotations)


def _check_unread(plugin: Plugin, situation: Situation, what: str, declared: Keys) -> None:
    """However it looks at pods, what it does not declare must not matter."""
    if declared is ALL:
        return
    cluster = situation.cluster(plugin, everything=True)
    for record in waiting(cluster):
        pod = record.pod
        given = getattr(pod.metadata, what) or {}
        unread = [key for key in given if key not in declared and key not in cluster.shapes.selected_keys]
        values = dict.fromkeys(unread, "other")
        other = _with_metadata(pod, **{what: {**given, **values, "nobody.example.com/selects": "this"}})
        one, two = (
            fresh_answers(plugin, cluster, record.shape),
            fresh_answers(plugin, cluster, cluster.shape_for(other)),
        )
        assert one == two, (
            f"{plugin.name} does not declare that it reads these {what} of pods, and answers {one} with {given} and "
            f"{two} with {getattr(other.metadata, what)}{situation.about(record.shape)}"
        )


def _with_metadata(pod: Pod, **metadata: Any) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, **metadata))


# After the choice.


def check_what_is_reserved_is_given_back(plugin: Plugin, situation: Situation) -> None:
    """`unreserve` after `reserve` leaves nodes, pods and related objects as they were."""
    if not isinstance(plugin, Reserve):
        return
    cluster = situation.cluster(plugin)
    row = int(cluster.nodes.live_rows()[0])
    for record in waiting(cluster):
        if not plugin.applies_to(record.shape):
            continue
        before = _without_versions(cluster)
        gathered = prepare(plugin, cluster, record.shape).for_filter
        if gathered is SKIP or isinstance(gathered, Rejection):
            continue
        with cluster.what_if():
            cluster.assume(record.key, row)
            taken = plugin.reserve(PodView.of(record, gathered), cluster.view, row)
            if not isinstance(taken, Rejection):
                cluster.observe(*taken)
            cluster.observe(*plugin.unreserve(PodView.of(record, gathered), cluster.view, row))
        assert _without_versions(cluster) == before, (
            f"{plugin.name}.unreserve does not give back what reserve took{situation.about(record.shape)}"
        )


def _without_versions(cluster: Cluster) -> dict[str, Any]:
    facts = {name: value for name, value in fingerprint(cluster).items() if name not in ("description", "pod_changes")}
    related = {kind: dict(objects) for kind, objects in cluster.related._by_kind.items()}
    return facts | {"related": related}
