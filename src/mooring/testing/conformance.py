"""Compare our decisions with recorded ones of the systems that we match: kube-scheduler, Kueue, Karpenter and others.

    python -m mooring.testing.conformance GOLDEN.jsonl.gz... [--answers DIR] [--show N]

Each line of a golden file is a scenario with the answer expected under `expect`. Prints what disagrees, then
`AGREE a/n FILE` for each file; exits 1 on any disagreement. With --answers, writes one file of answers for each golden
file, one JSON object a line.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mooring.actions.preempt.pods.search import Found, VictimSearch
from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.evaluate import Evaluation, evaluate
from mooring.errors import InputError
from mooring.model.loading.manifests import build_manifests
from mooring.state.loading import populate
from mooring.testing import (
    autoscaler_conformance,
    kai_conformance,
    koordinator_conformance,
    load_conformance,
    numa_conformance,
    provisioning_conformance,
    queueing_conformance,
    rebalance_conformance,
    share_conformance,
    topology_conformance,
    vpa_conformance,
)

OBJECTS = (
    "nodes",
    "namespaces",
    "services",
    "persistentVolumes",
    "persistentVolumeClaims",
    "storageClasses",
    "csiNodes",
    "podDisruptionBudgets",
    "deviceClasses",
    "resourceSlices",
    "resourceClaims",
    "pods",
)
FIELDS = ("prefilter", "feasible", "rejected", "scores", "total", "nominated", "victims")

Json = dict[str, Any]


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario with the public engine, in the form of its `expect`."""
    config = parse_config(scenario["config"], "config") if scenario.get("config") else None
    assembly = assemble(config)
    cluster = assembly.new_cluster()
    documents = [document for key in OBJECTS for document in scenario.get(key) or ()]
    manifests = build_manifests([*documents, scenario["pod"]], source=scenario["id"])
    pod = manifests.pods.pop()
    populate(cluster, manifests)
    evaluation = evaluate(assembly.default_profile, cluster, cluster.shape_for(pod))
    answer = {"id": scenario["id"], **describe(evaluation)}
    if evaluation.refused is None and not len(evaluation.feasible):
        found = VictimSearch(cluster).find(evaluation, pod)
        if isinstance(found, Found):
            victims = sorted(victim.key for victim in found.victims)
            answer |= {"nominated": found.node, "victims": victims}
    return answer


def describe(evaluation: Evaluation) -> Json:
    """An evaluation in the form of the golden files."""
    nodes = evaluation.cluster.nodes
    if evaluation.refused is not None:
        refused = evaluation.refused
        return {
            "prefilter": {
                "plugin": refused.plugin,
                "reasons": sorted(refused.reasons),
                "unresolvable": refused.unresolvable,
            }
        }
    rejected = {}
    for position, row in enumerate(evaluation.rows.tolist()):
        verdict = evaluation.verdict(position)
        if verdict is not None:
            by_narrowing = verdict.plugin == "PreFilterResult"
            rejected[nodes.name(row)] = {
                "plugin": verdict.plugin,
                "reasons": [] if by_narrowing else sorted(verdict.reasons),
                "unresolvable": verdict.unresolvable,
            }
    names = [nodes.name(row) for row in evaluation.feasible.tolist()]
    scores = {
        name: {plugin: int(values[position]) for plugin, values in evaluation.scores.items()}
        for position, name in enumerate(names)
    }
    total = dict(zip(names, evaluation.totals.tolist(), strict=True))
    return {"feasible": sorted(names), "rejected": rejected, "scores": scores, "total": total}


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which an answer differs, with both values in comparable form."""
    for field in FIELDS:
        want, have = _comparable(field, expected.get(field)), _comparable(field, answer.get(field))
        if want != have:
            yield field, want, have


def _comparable(field: str, value: Any) -> Any:
    if not value:
        return None
    if field == "prefilter":
        return _rejection(value)
    if field == "rejected":
        return {node: _rejection(rejection) for node, rejection in value.items()}
    if field in ("feasible", "victims"):
        return sorted(value)
    if field == "scores":
        return {node: {plugin: s for plugin, s in by_plugin.items() if s} for node, by_plugin in value.items()}
    return value


def _rejection(value: Json) -> tuple[str, tuple[str, ...], bool]:
    return value["plugin"], tuple(sorted(value.get("reasons") or ())), bool(value.get("unresolvable"))


def read_scenarios(path: Path) -> Iterator[Json]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            yield json.loads(line)


Differences = Callable[[Json, Json], Iterator[tuple[str, Any, Any]]]


FORMS: tuple[tuple[Callable[[Json], bool], Callable[[Json], Json], Differences], ...] = (
    (autoscaler_conformance.is_autoscaling, autoscaler_conformance.answer_scenario, autoscaler_conformance.differences),
    (
        provisioning_conformance.is_provisioning,
        provisioning_conformance.answer_scenario,
        provisioning_conformance.differences,
    ),
    (vpa_conformance.is_right_sizing, vpa_conformance.answer_scenario, vpa_conformance.differences),
    (load_conformance.is_load, load_conformance.answer_scenario, load_conformance.differences),
    (
        koordinator_conformance.is_koordinator,
        koordinator_conformance.answer_scenario,
        koordinator_conformance.differences,
    ),
    (rebalance_conformance.is_rebalancing, rebalance_conformance.answer_scenario, rebalance_conformance.differences),
    (kai_conformance.is_kai, kai_conformance.answer_scenario, kai_conformance.differences),
    (topology_conformance.is_topology, topology_conformance.answer_scenario, topology_conformance.differences),
    (numa_conformance.is_numa, numa_conformance.answer_scenario, numa_conformance.differences),
    (queueing_conformance.is_queueing, queueing_conformance.answer_scenario, queueing_conformance.differences),
    (share_conformance.is_shares, share_conformance.answer_scenario, share_conformance.differences),
)
"""Forms of scenarios, the first that applies: how one is recognised, answered, and compared."""


def answer_any(scenario: Json) -> tuple[Json, Differences]:
    """Answer a scenario of whatever kind; also how answers of its kind are compared."""
    for is_of_form, answer, compare in FORMS:
        if is_of_form(scenario):
            return answer(scenario), compare
    return answer_scenario(scenario), differences


def run_file(path: Path, answers: Path | None, show: int) -> bool:
    agreed = total = 0
    written = []
    for scenario in read_scenarios(path):
        total += 1
        answer, compare = answer_any(scenario)
        written.append(json.dumps(answer))
        wrong = list(compare(scenario["expect"], answer))
        if wrong and "also" in scenario and not any(compare(scenario["also"], answer)):
            wrong = []  # what the next version of the system answers is as good
        agreed += not wrong
        if wrong and show > 0:
            show -= 1
            for field, want, have in wrong:
                print(f"{scenario['id']} {field}:\n  expected {want}\n  got      {have}")
    if answers is not None:
        answers.mkdir(parents=True, exist_ok=True)
        name = path.name.removesuffix(".gz")
        (answers / name).write_text("".join(line + "\n" for line in written))
    print(f"AGREE {agreed}/{total} {path.name}")
    return agreed == total


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mooring.testing.conformance", description=__doc__)
    parser.add_argument("golden", nargs="+", type=Path, help="files of scenarios, one JSON object a line")
    parser.add_argument("--answers", type=Path, help="write our answers into this folder")
    parser.add_argument("--show", type=int, default=5, help="show at most so many disagreements a file")
    options = parser.parse_args(argv)
    for path in options.golden:
        if not path.is_file():
            print(f"{path}: expected a golden file, found none", file=sys.stderr)
            return 2
    results: list[bool] = []
    for path in options.golden:
        try:
            results.append(run_file(path, options.answers, options.show))
        except (InputError, KeyError) as error:
            found = f"no field {error}" if isinstance(error, KeyError) else str(error)
            print(f"{path}: expected scenarios of a form that is known here, found: {found}", file=sys.stderr)
            return 2
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
