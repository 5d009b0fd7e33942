"""The result of `mooring schedule` as a value: what json and yaml print, and what the table is drawn from."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests
from mooring.report.admissions import Admitted, Noticed, Suspended, gather_admissions, gather_notices
from mooring.report.devices import NodeDevices, device_maps
from mooring.report.gpus import NodeGpus, Partitioned, gpu_maps, partitions
from mooring.report.names import Workloads
from mooring.report.placements import (
    Ended,
    EndedPod,
    Evicted,
    Lost,
    LostPod,
    Placement,
    Resized,
    ResizedPod,
    endings,
    evictions,
    losses,
    placements,
    resizes,
)
from mooring.report.pools import Pool, configured_pools, pool_names, pools
from mooring.report.waiting import Forbidden, NotOurs, Waiting, forbidden, gated, not_ours, waiting, why_waits


class Summary(Struct, rename="camel"):
    nodes: int
    placed: int
    nodes_used: int
    """How many nodes the placed pods went to."""
    waiting: int
    forbidden: int
    """How many pods; other objects are not counted here."""
    gated: int
    waiting_for_quota: int
    """How many of those behind a gate are of workloads that wait for quota."""
    not_ours: int
    already_bound: int
    leaving: int
    """How many pods are being deleted and have no node."""
    over: int
    """How many pods of the manifests are not there any more: finished, evicted or lost, now or before."""
    evicted: int
    lost: int
    """How many pods lost their nodes, those that somebody makes anew included."""
    ended: int
    """How many pods ended by themselves."""
    admitted: int
    """How many workloads were given quota."""
    suspended: int
    """How many workloads had to give it back."""


class Result(Struct, rename="camel"):
    summary: Summary
    placements: list[Placement]
    """In the order of the decisions."""
    waiting: list[Waiting]
    """In queue order."""
    forbidden: list[Forbidden]
    """In the order in which they would have been created."""
    gated: list[Waiting]
    not_ours: list[NotOurs]
    evicted: list[Evicted]
    """Pods that ran when we came; in the order of the decisions."""
    lost: list[Lost]
    """Pods whose nodes went in this step of a story, or drove them away."""
    ended: list[Ended]
    """Pods that ended by themselves as time passed until this step."""
    resized: list[Resized]
    """Pods on nodes that were given other amounts of CPU or memory in this step of a story."""
    admitted: list[Admitted]
    """Workloads that were given quota; in the order of the decisions."""
    suspended: list[Suspended]
    """Workloads that had to give it back; in the order of the decisions."""
    notices: list[Noticed]
    """Workloads that were told that they will have to, and when."""
    pools: list[Pool]
    devices: list[NodeDevices]
    """The nodes on which claims have devices, and who has which."""
    ignored: dict[str, int]
    """How many objects there were of each kind that scheduling does not read."""
    gpus: list[NodeGpus]
    """The nodes on which pods share GPUs, and have which cards."""
    partitions: list[Partitioned]
    """GPUs that are to be cut into instances, or are to be whole again."""


def make_result(
    scheduler: Scheduler,
    manifests: Manifests,
    decisions: Iterable[Decision],
    pool_label: str | None = None,
    ran: Mapping[str, Pod] | None = None,
    lost: Sequence[LostPod] = (),
    ended: Sequence[EndedPod] = (),
    resized: Sequence[ResizedPod] = (),
) -> Result:
    """Gather what was decided, and why the others wait, as things stand at the end.

    Pools are told apart by the given label, by NodePools where they are configured, or by the best known label. `ran`
    are the pods that ran before, by default those that the manifests show on a node.
    """
    decisions = list(decisions)
    configured = [] if pool_label else configured_pools(scheduler)
    pool_of = pool_names(scheduler.cluster, pool_label, configured)
    workloads = Workloads(manifests)
    pods = {pod.key: pod for pod in manifests.pods}
    ran = {key: pod for key, pod in pods.items() if pod.spec.node_name} if ran is None else ran
    admitted, suspended = gather_admissions(scheduler, decisions)
    result = Result(
        summary=Summary(*[0] * len(Summary.__struct_fields__)),
        placements=placements(scheduler, decisions, workloads, pool_of),
        waiting=waiting(scheduler, workloads),
        forbidden=forbidden(manifests, workloads),
        gated=gated(scheduler, workloads),
        not_ours=not_ours(scheduler, workloads),
        evicted=evictions(scheduler, decisions, pods, ran, workloads),
        lost=losses(lost, workloads),
        ended=endings(ended, workloads),
        resized=resizes(resized, workloads),
        admitted=admitted,
        suspended=suspended,
        notices=gather_notices(scheduler, decisions),
        pools=pools(scheduler.cluster, pool_of, configured),
        devices=device_maps(scheduler.cluster),
        ignored=dict(sorted(manifests.ignored.items())),
        gpus=gpu_maps(scheduler.cluster),
        partitions=partitions(decisions),
    )
    result.summary = _summary(result, scheduler, pods)
    return result


def _summary(result: Result, scheduler: Scheduler, pods: Mapping[PodKey, Pod]) -> Summary:
    """Each pod is counted in one of placed, waiting, gated, not_ours, already_bound, leaving and over, or forbidden."""
    records = scheduler.cluster.pods.records
    bound = sum(1 for record in records.values() if record.node_name and not record.nominated)
    without_node = [record for record in records.values() if not record.node_name]
    leaving = sum(
        record.pod.metadata.deletion_timestamp is not None and record.pod.spec.scheduler_name in scheduler.profiles
        for record in without_node
    )
    return Summary(
        nodes=len(scheduler.cluster.nodes),
        placed=len(result.placements),
        nodes_used=len({placement.node for placement in result.placements}),
        waiting=len(result.waiting),
        forbidden=sum(1 for found in result.forbidden if found.kind == "Pod"),
        gated=len(result.gated),
        waiting_for_quota=sum(1 for entry, _ in scheduler.queue.gated() if why_waits(scheduler, entry.record.key)),
        not_ours=len(result.not_ours),
        already_bound=bound - len(result.placements),
        leaving=leaving,
        over=sum(key not in records for key in pods),
        evicted=len(result.evicted),
        lost=len(result.lost),
        ended=len(result.ended),
        admitted=len(result.admitted),
        suspended=len(result.suspended),
    )
