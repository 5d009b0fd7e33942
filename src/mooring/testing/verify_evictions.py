"""Check evictions as they are decided: every victim runs where it is said to, and counts for less than who comes."""

from collections.abc import Iterable, Iterator

from mooring.model.decisions import Decision, Evict
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster


def wrong_victims(cluster: Cluster, decisions: Iterable[Decision]) -> Iterator[str]:
    """What is wrong with the evictions of a cycle, one line each; to be asked before they are carried out.

    Pods of workload that queues are evicted because their quota is taken back: `verify_tenants` looks at those.
    """
    for found in decisions:
        if not isinstance(found, Evict) or not found.preemptor or found.pod in cluster.tenants.workload_of:
            continue
        victim, preemptor = (
            cluster.pods.records.get(PodKey(found.pod)),
            cluster.pods.records.get(PodKey(found.preemptor)),
        )
        if victim is None:
            yield f"{found.pod} is to be evicted, and does not exist"
            continue
        if victim.node_name != found.node:
            yield f"{found.pod} is to be evicted from {found.node}, and is on {victim.node_name or 'no node'}"
        if preemptor is None:
            yield f"{found.pod} is to be evicted for {found.preemptor}, which does not exist"
        elif not found.successor and victim.priority >= preemptor.priority:  # a pod that moves loses to nobody
            yield (
                f"{found.pod} of priority {victim.priority} is to be evicted "
                f"for {found.preemptor} of priority {preemptor.priority}"
            )
