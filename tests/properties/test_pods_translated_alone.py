"""Pods that are translated on their own are told as if they had been read together with everything that changed."""

from collections.abc import Iterable, Mapping
from typing import Any

from catalog_objects import LONE_WORLD, WORLD, Document
from hypothesis import given
from hypothesis import strategies as st
from test_catalog_changes import PLACE, kind_of, put, remove

from examples import examples
from mooring.model.api.pods import Pod
from mooring.model.loading.arrival import complete
from mooring.model.loading.catalog import Catalog
from mooring.model.loading.ties import all_ties_of, ties_of
from mooring.model.objects.kinds import decode
from mooring.model.objects.picture import Identity


class Together(Catalog):
    """Takes no pod for one that is alone."""

    def _alone(self, changed: Mapping[Identity, Iterable[Any]]) -> dict[Identity, None]:
        return {}


Story = list[list[tuple[int, int | None]]]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Which object gets which version, or goes; told in several goes. Mostly of pods."""
    index = st.integers(0, 3) | st.integers(0, len(LONE_WORLD) - 1)
    step = index.flatmap(lambda i: st.tuples(st.just(i), st.none() | st.integers(0, len(LONE_WORLD[i]) - 1)))
    return draw(st.lists(st.lists(step, min_size=1, max_size=6), min_size=2, max_size=8))


@given(story=stories())
@examples(200)
def test_events_problems_and_their_order_are_the_same(story: Story) -> None:
    catalog, together = Catalog(expands=False), Together(expands=False)
    present: dict[int, Document] = {}
    for steps in story:
        for index, version in steps:
            if version is not None:
                present[index] = LONE_WORLD[index][version]
            elif index not in present:
                continue
            for each in (catalog, together):
                if version is None:
                    remove(each, present[index])
                else:
                    put(each, present[index])
            if version is None:
                del present[index]

        assert catalog.changes() == together.changes()
        assert [str(problem) for problem in catalog.problems] == [str(problem) for problem in together.problems]
        assert catalog.translated == together.translated


def test_what_plain_pods_are_tied_to_is_seen_at_once_and_is_all() -> None:
    plain = 0
    for document in (each for versions in (*WORLD, *LONE_WORLD) for each in versions if each["kind"] == "Pod"):
        kind = kind_of(document)
        pod: Pod = decode(document, kind.type, PLACE, kind.name)
        complete(kind, pod, PLACE)

        found, everything = ties_of(pod, expands=False), all_ties_of(pod, expands=False)

        assert found[:-1] == everything[:-1]
        plain += found.is_plain
    assert plain > 100
