"""Checks of single answers: one a row, each row by itself, in range, in words, and without touching anything."""

import pickle
from itertools import combinations
from typing import Any

import numpy as np

from mooring.engine.asking import extremes
from mooring.engine.plugin import (
    MAX_SCORE,
    MIN_SCORE,
    SKIP,
    FilterAnswers,
    Plugin,
    PreEnqueue,
    PreFilter,
    QueueSort,
    ScoreAnswers,
)
from mooring.engine.shortcuts import QuickMask
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows
from mooring.testing.asking import asked_shapes, can_filter, can_score, names, prepare, rows_of
from mooring.testing.situations import Situation


def check_one_answer_a_row(plugin: Plugin, situation: Situation) -> None:
    """`filter` gives truths or whole numbers, `score` whole numbers, as many as there are rows."""
    cluster = situation.cluster(plugin)
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        for rows in (cluster.nodes.live_rows(), cluster.nodes.live_rows()[:0]):
            nodes = cluster.rows(rows)
            for what, answer in (
                ("filter", prepared.codes(nodes) if can_filter(plugin) else None),
                ("score", prepared.raw(nodes) if can_score(plugin) else None),
            ):
                if answer is None:
                    continue
                assert answer.shape == (len(rows),), (
                    f"{plugin.name}.{what} gave {answer.shape} for {len(rows)} rows{situation.about(shape)}"
                )
                assert answer.dtype.kind in "iu", (
                    f"{plugin.name}.{what} gave {answer.dtype}, not whole numbers{situation.about(shape)}"
                )


def check_each_row_is_answered_by_itself(plugin: Plugin, situation: Situation) -> None:
    """Some rows, in another order, or a row alone, get the answers that they get among all."""
    cluster = situation.cluster(plugin)
    rows = cluster.nodes.live_rows()
    generator = np.random.default_rng(situation.seed)
    selections: list[tuple[str, Rows]] = [
        ("in reverse order", rows[::-1]),
        ("shuffled", generator.permutation(rows)),
        ("half of them", generator.permutation(rows)[: len(rows) // 2]),
        ("some asked twice", np.concatenate([rows, rows[:2]])),
        *((f"only {names(cluster, row)[0]}", row) for row in rows_of(cluster)),
    ]
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        for what, ask in (("filter", prepared.codes), ("score", prepared.raw)):
            if not (can_filter(plugin) if what == "filter" else can_score(plugin)):
                continue
            among_all = ask(cluster.rows(rows))
            if among_all is None:
                continue
            by_row = dict(zip(rows.tolist(), among_all.tolist(), strict=True))
            for how, selected in selections:
                asked = ask(cluster.rows(selected))
                assert asked is not None
                expected = [by_row[row] for row in selected.tolist()]
                assert asked.tolist() == expected, (
                    f"{plugin.name}.{what} answers otherwise for nodes {how}: {asked.tolist()} for "
                    f"{names(cluster, selected)}, among all {expected}{situation.about(shape)}"
                )


def check_the_same_question_gets_the_same_answer(plugin: Plugin, situation: Situation) -> None:
    """Asked twice, and by another cluster with the same objects."""
    cluster, other = situation.cluster(plugin), situation.cluster(plugin)
    for shape, twin in zip(asked_shapes(cluster), asked_shapes(other), strict=True):
        first = prepare(plugin, cluster, shape).answers(cluster.rows())
        again = prepare(plugin, cluster, shape).answers(cluster.rows())
        elsewhere = prepare(plugin, other, twin).answers(other.rows())
        assert again == first, f"{plugin.name} answers otherwise when asked again{situation.about(shape)}"
        assert elsewhere == first, (
            f"{plugin.name} answers otherwise for another cluster with the same objects{situation.about(shape)}"
        )


def check_asking_changes_nothing(plugin: Plugin, situation: Situation) -> None:
    """A plugin reads the cluster and leaves it as it was."""
    cluster = situation.cluster(plugin)
    before = fingerprint(cluster)
    for shape in asked_shapes(cluster):
        prepare(plugin, cluster, shape).answers(cluster.rows())
    changed = [name for name, value in fingerprint(cluster).items() if before.get(name, value) != value]
    assert not changed, f"{plugin.name} changed {', '.join(changed)} of the cluster while it was asked"


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Everything that a plugin might touch; label columns are made when first read, so only those of both compare."""
    nodes, pods, end = cluster.nodes, cluster.pods, cluster.nodes.end
    table = nodes.fingerprint()
    facts = {name: values for name, values in table["columns"].items() if any(values)}
    facts |= {f"label {key}": column.codes[:end].tolist() for key, column in nodes._labels.items()}
    return facts | {
        "ports": table["ports"],
        "row_of": table["rows"],
        "taint_set": nodes.taint_set.values[:end].tolist(),
        "tie": nodes.tie.values[:end].tolist(),
        "pods": {key: (record.row, record.node_name, record.shape.id) for key, record in pods.records.items()},
        "pods.row": pods.row.values[: pods.end].tolist(),
        "description": cluster.description,
        "pod_changes": cluster.pod_changes.position,
    }


def check_scores_are_in_range(plugin: Plugin, situation: Situation) -> None:
    """After normalising over the feasible nodes, every score is within 0..100, whichever nodes those are."""
    if not isinstance(plugin, ScoreAnswers) or not can_score(plugin):
        return
    cluster = situation.cluster(plugin)
    generator = np.random.default_rng(situation.seed)
    for shape in asked_shapes(cluster):
        rows = cluster.nodes.live_rows()
        if can_filter(plugin):
            rows = rows[prepare(plugin, cluster, shape).codes(cluster.rows()) == 0]
        for feasible in (rows, rows[:1], generator.permutation(rows)[: 1 + len(rows) // 2]):
            nodes = cluster.rows(np.sort(feasible))
            raw = prepare(plugin, cluster, shape, nodes).raw(nodes)
            if raw is None or not len(raw):
                continue
            final = plugin.normalize(raw, *extremes(raw)) if plugin.normalizes else raw
            hint = "" if plugin.normalizes else " (set normalizes = True and write normalize to bring them into range)"
            assert final.min() >= MIN_SCORE and final.max() <= MAX_SCORE, (
                f"{plugin.name} scores {sorted(set(final.tolist()))}, outside {MIN_SCORE}..{MAX_SCORE}{hint}"
                f"{situation.about(shape)}"
            )


def check_normalize_takes_each_score_by_itself(plugin: Plugin, situation: Situation) -> None:
    """Given the same extremes, a raw score comes to the same, whichever others stand beside it."""
    if not isinstance(plugin, ScoreAnswers) or not plugin.normalizes or not can_score(plugin):
        return
    cluster = situation.cluster(plugin)
    for shape in asked_shapes(cluster):
        raw = prepare(plugin, cluster, shape).raw(cluster.rows())
        if raw is None or not len(raw):
            continue
        lowest, highest = extremes(raw)
        together = plugin.normalize(raw.copy(), lowest, highest)
        alone = [int(plugin.normalize(raw[i : i + 1].copy(), lowest, highest)[0]) for i in range(len(raw))]
        assert together.tolist() == alone, (
            f"{plugin.name}.normalize brings {raw.tolist()} to {together.tolist()} together and to {alone} one by one: "
            f"use the lowest and highest that it is given{situation.about(shape)}"
        )


def check_refusals_have_words(plugin: Plugin, situation: Situation) -> None:
    """Whatever a filter answers but 0, `rejection` can say why, as a value that can be kept and sent."""
    if not isinstance(plugin, FilterAnswers) or not can_filter(plugin):
        return
    cluster = situation.cluster(plugin)
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        if isinstance(prepared.for_filter, Rejection):
            _check_rejection(plugin, prepared.for_filter)
            continue
        codes = prepared.codes(cluster.rows())
        for code in np.unique(codes[codes != 0]).tolist():
            _check_rejection(plugin, plugin.rejection(shape, code))
        refused = cluster.nodes.live_rows()[codes != 0]
        if len(refused):
            for change, positions in plugin.remedies(shape, cluster.rows(refused), prepared.for_filter):
                assert change.strip(), f"{plugin.name}.remedies gave a change without words"
                inside = all(0 <= position < len(refused) for position in np.asarray(positions).tolist())
                assert inside, f"{plugin.name}.remedies: {change!r} opens positions {positions} of {len(refused)} rows"


def _check_rejection(plugin: Plugin, rejection: Any) -> None:
    assert isinstance(rejection, Rejection), f"{plugin.name} refused with {rejection!r}, which is no Rejection"
    reasons = rejection.reasons
    told = bool(reasons) and not isinstance(reasons, str) and all(isinstance(r, str) and r.strip() for r in reasons)
    assert told, f"{plugin.name} refused with {rejection!r}: expected at least one reason in words"
    assert pickle.loads(pickle.dumps(rejection)) == rejection, f"{rejection!r} cannot be pickled"
    assert all(reason in str(rejection) for reason in reasons), f"{rejection!r} does not print its reasons"


def check_passes_agrees_with_filter(plugin: Plugin, situation: Situation) -> None:
    """`passes` is `filter` without the reasons."""
    if not isinstance(plugin, QuickMask):
        return
    cluster = situation.cluster(plugin)
    nodes = cluster.rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        if prepared.for_filter is SKIP or isinstance(prepared.for_filter, Rejection):
            continue
        expected = (prepared.codes(nodes) == 0).tolist()
        found = plugin.passes(shape, nodes, prepared.for_filter).tolist()
        assert found == expected, f"{plugin.name}.passes gave {found}, filter {expected}{situation.about(shape)}"


def check_narrow_leaves_out_only_what_filter_refuses(plugin: Plugin, situation: Situation) -> None:
    """Nodes that `narrow` does not name would not have passed."""
    if not isinstance(plugin, PreFilter):
        return
    cluster = situation.cluster(plugin)
    rows = cluster.nodes.live_rows()
    for shape in asked_shapes(cluster):
        named = plugin.narrow(shape)
        if named is None:
            continue
        codes = prepare(plugin, cluster, shape).codes(cluster.rows(rows))
        passing = set(names(cluster, rows[codes == 0]))
        left_out = passing if isinstance(named, Rejection) else passing - named
        assert not left_out, (
            f"{plugin.name}.narrow leaves out {sorted(left_out)}, which filter accepts{situation.about(shape)}"
        )


def check_queueing_is_answered(plugin: Plugin, situation: Situation) -> None:
    """Gates answer None or a Rejection with reasons; sort keys compare with one another."""
    cluster = situation.cluster(plugin)
    pods = [record.pod for record in cluster.pods.records.values()]
    if isinstance(plugin, PreEnqueue):
        for pod in pods:
            answer = plugin.pre_enqueue(pod)
            if answer is not None:
                _check_rejection(plugin, answer)
    if isinstance(plugin, QueueSort):
        keys = [plugin.sort_key(pod, float(index)) for index, pod in enumerate(pods)]
        again = [plugin.sort_key(pod, float(index)) for index, pod in enumerate(pods)]
        assert keys == again, f"{plugin.name}.sort_key gives other keys when asked again"
        keys.sort()
        ordered = not any(later < earlier for earlier, later in combinations(keys, 2))
        assert ordered, f"{plugin.name}.sort_key gives keys without an order: {keys}"


def check_a_cluster_without_pods_is_answered(plugin: Plugin, situation: Situation) -> None:
    """Nobody may rely on pods, or on nodes, being there."""
    for without in ("pods", "nodes"):
        cluster = situation.cluster(plugin, without=without)
        for pod in situation.objects().pods:
            if not pod.spec.node_name:
                prepare(plugin, cluster, cluster.shape_for(pod)).answers(cluster.rows())
