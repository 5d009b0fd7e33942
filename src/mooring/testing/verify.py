"""Check a cluster after the fact, from the pods themselves: nothing over-allocated, every constraint kept."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from mooring.engine.evaluate import PASSED, Evaluation, prepare_filters, run_filters
from mooring.engine.profile import Profile
from mooring.model.values.requests import pod_requests, to_pod_units
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.testing.claim_worlds import wrong_with_devices


def verify(cluster: Cluster, profiles: Mapping[str, Profile], *, most_pods: int = 300) -> list[str]:
    """What is wrong, one line each; at most so many pods, evenly chosen, are asked for again one by one."""
    problems = [*over_allocated(cluster), *wrong_with_devices(cluster)]
    bound = [record for record in cluster.pods.records.values() if record.row >= 0 and record.assumed]
    step = max(1, len(bound) // most_pods)
    for record in bound[::step]:
        profile = profiles.get(record.pod.spec.scheduler_name)
        refusal = refused_in_place(cluster, profile, record) if profile else None
        if refusal:
            problems.append(f"{record.key} on {record.node_name}: {refusal}")
    return problems


def over_allocated(cluster: Cluster) -> Iterator[str]:
    """Recount every node's pods from their specifications."""
    taken: dict[int, Counter[str]] = defaultdict(Counter)
    pods: Counter[int] = Counter()
    for record in cluster.pods.records.values():
        if record.row >= 0:
            pods[record.row] += 1
            for name, amount in pod_requests(record.pod).items():
                taken[record.row][name] += to_pod_units(name, amount)
    for row, amounts in taken.items():
        name = cluster.nodes.name(row)
        if pods[row] > cluster.nodes.allowed_pods.values[row]:
            yield f"{name}: {pods[row]} pods, {cluster.nodes.allowed_pods.values[row]} allowed"
        for resource, amount in amounts.items():
            allocatable = int(cluster.nodes.allocatable(resource)[row])
            if amount > allocatable:
                yield f"{name}: {amount} of {resource} taken, {allocatable} allocatable"
            if amount != cluster.nodes.requested(resource)[row]:
                yield f"{name}: {amount} of {resource} taken, {cluster.nodes.requested(resource)[row]} accounted for"


def refused_in_place(cluster: Cluster, profile: Profile, record: PodRecord) -> str | None:
    """Take a pod off its node and ask every filter whether it may go back there; None if it may."""
    row = record.row
    with cluster.what_if():
        cluster.release(record.key)
        answer = Evaluation(record.shape, cluster, profile, cluster.nodes.live_rows())
        allowed = prepare_filters(answer)
        if answer.refused is not None:
            return ", ".join(answer.refused.reasons)
        run_filters(answer, allowed)
        position = answer.rows.tolist().index(row)
        if answer.failed_by[position] == PASSED:
            return None
        verdict = answer.verdict(position)
        assert verdict is not None
        return ", ".join(verdict.reasons)
