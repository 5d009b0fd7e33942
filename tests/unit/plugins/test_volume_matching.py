"""Matching many rows at once gives what matching them one by one gives."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from volume_builders import LOCAL, make_claim, make_cluster, make_node, make_volume

from mooring.model.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.plugins.volume_matching import NONE, match_claims, unbound_claim

NODE_NAMES = ("a", "b", "c")
SIZES = st.integers(1, 4)


@st.composite
def volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    return [
        make_volume(
            f"disk-{index}",
            size=str(draw(SIZES)),
            nodes=draw(st.none() | st.lists(st.sampled_from(NODE_NAMES), unique=True)),
            for_claim=draw(st.sampled_from(["", "", "", "claim-0", "claim-1"])),
        )
        for index in range(draw(st.integers(0, 6)))
    ]


@st.composite
def claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    return [make_claim(f"claim-{index}", size=str(size), storage_class="local") for index, size in enumerate(sizes)]


def match_on(node: str, wanted: Sequence[PersistentVolumeClaim], offered: Sequence[PersistentVolume]) -> dict[str, str]:
    """Claim by claim, smallest first: the volume made for it, else the smallest that is free and can be reached."""

    def size_of(claim: PersistentVolumeClaim) -> int:
        assert claim.spec.resources is not None
        assert claim.spec.resources.requests is not None
        return int(claim.spec.resources.requests["storage"])

    def capacity_of(volume: PersistentVolume) -> int:
        return int((volume.spec.capacity or {})["storage"])

    def is_reachable(volume: PersistentVolume) -> bool:
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return True
        expressions = affinity.required.node_selector_terms[0].match_expressions or []
        return node in (expressions[0].values or [])

    chosen: dict[str, str] = {}
    for claim in sorted(wanted, key=size_of):
        fitting = [v for v in offered if capacity_of(v) >= size_of(claim) and v.metadata.name not in chosen.values()]
        name = claim.metadata.name
        own = [v for v in fitting if v.spec.claim_ref is not None and v.spec.claim_ref.name == name]
        if own:
            best = min(own, key=lambda v: (capacity_of(v), v.metadata.name))
            if is_reachable(best):
                chosen[name] = best.metadata.name
            continue
        free = [v for v in fitting if v.spec.claim_ref is None and is_reachable(v)]
        if free:
            chosen[name] = min(free, key=lambda v: (capacity_of(v), v.metadata.name)).metadata.name
    return chosen


@given(claims(), volumes())
def test_all_rows_at_once_is_each_row_by_itself(
    wanted: list[PersistentVolumeClaim], offered: list[PersistentVolume]
) -> None:
    cluster = make_cluster(*map(make_node, NODE_NAMES), LOCAL, *offered, *wanted)

    matches = match_claims(cluster.rows(), [unbound_claim(claim, LOCAL, cluster.view.related) for claim in wanted])

    for position, node in enumerate(NODE_NAMES):
        found = {
            claim.key.removeprefix("default/"): claim.candidates[chosen[position]].volume
            for claim, chosen in matches.found
            if chosen[position] != NONE
        }
        assert found == match_on(node, wanted, offered), node
        assert (matches.codes[position] == 0) == (len(found) == len(wanted)), node
