"""What plugins see of pods' labels and annotations: what they say they read, and nothing else."""

import pytest

from mooring.errors import UndeclaredRead
from mooring.state.read_keys import ALL, ReadKeys
from mooring.state.shapes import Shape, ShapeTable
from mooring.testing.builders import make_pod

LABELS = {"team": "vision", "index": "7"}
NOTES = {"example.com/cost": "3"}


def shape(read_keys: ReadKeys) -> Shape:
    return ShapeTable(read_keys).intern(make_pod(labels=LABELS, annotations=NOTES), bound=False)


def test_what_is_declared_can_be_read_in_every_way() -> None:
    found = shape(ReadKeys(frozenset(("team", "tier")), frozenset(("example.com/cost",))))

    assert (found.label("team"), found.labels["team"], found.labels.get("team", "")) == ("vision",) * 3
    assert (found.label("tier"), found.labels.get("tier", "none"), "tier" in found.labels) == (None, "none", False)
    assert (found.pod.metadata.labels or {}).get("team") == "vision"
    assert found.annotation("example.com/cost") == "3"


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda pod: pod.label("index"), id="label"),
        pytest.param(lambda pod: pod.labels["index"], id="labels[]"),
        pytest.param(lambda pod: pod.labels.get("index", ""), id="labels.get"),
        pytest.param(lambda pod: "index" in pod.labels, id="in"),
        pytest.param(lambda pod: (pod.pod.metadata.labels or {}).get("index"), id="through the pod"),
    ],
)
def test_a_key_that_nobody_declares_is_told_with_the_line_to_add(read: object) -> None:
    assert callable(read)
    message = 'it reads the label "index" of pods without saying so: add reads_pod_labels = ("index",) to the class'

    with pytest.raises(UndeclaredRead) as told:
        read(shape(ReadKeys(frozenset(("team",)))))

    assert str(told.value) == message


@pytest.mark.parametrize("read", [dict, list, len, set, lambda labels: {**labels}, lambda labels: labels == {}])
def test_looking_at_all_labels_wants_all_of_them_declared(read: object) -> None:
    assert callable(read)

    with pytest.raises(UndeclaredRead, match=r"it reads all labels .* add reads_pod_labels = ALL"):
        read(shape(ReadKeys(frozenset(("team",)))).labels)

    assert read(shape(ReadKeys(ALL)).labels) == read(LABELS)


def test_a_selector_does_not_make_a_label_readable() -> None:
    shapes = ShapeTable()
    shapes.select_on(["team"])
    found = shapes.intern(make_pod(labels=LABELS), bound=False)

    assert found.selected_labels == {"team": "vision"}
    with pytest.raises(UndeclaredRead, match="team"):
        found.label("team")


def test_pods_are_of_one_shape_unless_they_differ_in_what_is_read() -> None:
    pods = [make_pod(labels={"team": f"{i % 2}", "index": f"{i}"}, annotations={"cost": f"{i % 3}"}) for i in range(12)]

    def shapes(read_keys: ReadKeys) -> int:
        table = ShapeTable(read_keys)
        return len({table.intern(pod, bound=False).id for pod in pods})

    found = {
        "nothing": shapes(ReadKeys()),
        "team": shapes(ReadKeys(frozenset(("team",)))),
        "team and cost": shapes(ReadKeys(frozenset(("team",)), frozenset(("cost",)))),
        "all": shapes(ReadKeys(ALL)),
    }
    assert found == {"nothing": 1, "team": 2, "team and cost": 6, "all": 12}
