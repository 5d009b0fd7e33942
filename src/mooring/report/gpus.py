"""The GPUs of nodes as a map: which card, how it is cut, and who has what of it."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from mooring.model.decisions import Decision, Partition
from mooring.model.devices.cards import NodeCards, Sharing
from mooring.state.cluster import Cluster


class GpuShare(Struct, rename="camel", omit_defaults=True):
    """What one pod has of a card."""

    pod: str
    namespace: str
    cores_percent: float = 0.0
    memory_mib: int = 0
    profile: str = ""
    """Of a MIG instance."""
    start: int = -1
    """The slice that it begins at."""
    claim: str = ""
    """namespace/name of the claim by which it has its share."""


class Gpu(Struct, rename="camel", omit_defaults=True):
    """One card."""

    index: int
    shares: list[GpuShare]
    uuid: str = ""
    model: str = ""
    memory_mib: int = 0
    is_healthy: bool = True
    replicas: int = 0
    """How often it is offered, if its replicas are counted."""


class NodeGpus(Struct, rename="camel", omit_defaults=True):
    """The cards of one node."""

    node: str
    sharing: str
    """How they are handed out: counted, hami, koordinator, gpu-milli, time-slicing, mps or mig."""
    gpus: list[Gpu]


class Partitioned(Struct, rename="camel", omit_defaults=True):
    """A GPU that is to be cut so."""

    node: str
    gpu: int
    instances: list[str]
    """Each as profile@first slice; nothing: it is whole again."""


def partitions(decisions: Iterable[Decision]) -> list[Partitioned]:
    """How GPUs are to be cut in the end, of all that was decided on the way."""
    last = {(found.node, found.gpu): found for found in decisions if isinstance(found, Partition)}
    return [
        Partitioned(node, gpu, [f"{each.profile}@{each.start}" for each in found.instances])
        for (node, gpu), found in sorted(last.items())
    ]


def gpu_maps(cluster: Cluster) -> list[NodeGpus]:
    """The nodes on which anybody has a share of a card, in the order of their names."""
    return sorted(_maps(cluster), key=lambda found: found.node)


def _maps(cluster: Cluster) -> Iterator[NodeGpus]:
    for row, cards in cluster.nodes.cards.of_row.items():
        shares = [*_of_pods(cluster, row), *_of_claims(cluster, row)]
        if shares:
            gpus = [
                Gpu(
                    index=card.index,
                    shares=[share for position, share in shares if position == at],
                    uuid=card.uuid,
                    model=card.model,
                    memory_mib=card.memory,
                    is_healthy=card.is_healthy,
                    replicas=card.slots if cards.sharing in (Sharing.REPLICAS, Sharing.HAMI) else 0,
                )
                for at, card in enumerate(cards.cards)
            ]
            yield NodeGpus(cluster.nodes.name(row), sharing_text(cards), gpus)


def _of_pods(cluster: Cluster, row: int) -> Iterator[tuple[int, GpuShare]]:
    """What pods have of each card, by its position."""
    for record, shares in cluster.card_holders.on_row(row):
        metadata = record.pod.metadata
        for share in shares:
            yield (
                share.card,
                GpuShare(metadata.name, metadata.namespace, share.milli / 10, share.memory, share.profile, share.start),
            )


def _of_claims(cluster: Cluster, row: int) -> Iterator[tuple[int, GpuShare]]:
    """What claims have of each card that is a device, by its position: a line for each pod that uses the claim."""
    for holder, share in cluster.joined.shares_of_claims(row):
        for key in sorted(cluster.claims.state(str(holder)).users) or [str(holder)]:
            namespace, _, name = key.partition("/")
            found = GpuShare(name, namespace, share.milli / 10, share.memory, claim=str(holder))
            yield share.card, found


def sharing_text(cards: NodeCards) -> str:
    return cards.strategy or cards.sharing.name.lower().replace("_", "-")
