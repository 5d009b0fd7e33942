"""What a snapshot keeps of objects is all that is read of them."""

from pathlib import Path

import msgspec
import pytest

from mooring.drivers.live.watching.snapshot import documents
from mooring.model.api.meta import ObjectMeta
from mooring.model.jobs.app_wrapper import AppWrapper, AppWrapperSpec
from mooring.model.loading.documents import read_documents
from mooring.model.loading.manifests import build_manifests
from mooring.model.objects.kinds import decode, find_kind

EXAMPLES = Path(__file__).parents[2] / "examples"
NO_OBJECTS = ("simulations", "4-production-is-done.yaml", "groups.yaml")
FILES = sorted(path for path in EXAMPLES.rglob("*.yaml") if not {*NO_OBJECTS} & {*path.parts})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_a_snapshot_of_objects_reads_as_the_objects_do(path: Path) -> None:
    objects = []
    for document in read_documents([path]):
        kind = find_kind(document.api_version, document.kind)
        if kind is not None:
            found = decode(document.source, kind.type, document.place, kind.name)
            found.api_version, found.kind = document.api_version, document.kind
            objects.append(found)

    kept = [decode(each, type(found), document.place) for each, found in zip(documents(objects), objects, strict=True)]

    assert kept == objects


def test_hashed_names_still_name_each_other() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "secret-project-0",
            "namespace": "secret-team",
            "annotations": {"example.com/after": "secret-team/secret-project-1, other"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "secret-project", "controller": True}],
        },
        "spec": {"nodeName": "n0", "containers": [{"name": "main", "image": "pause"}]},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "1"}}}
    other = {**pod, "metadata": {"name": "secret-project-1", "namespace": "secret-team"}}
    given = build_manifests([pod, node, other])

    first, second, place = documents([*given.pods, *given.nodes], hash_names=True)

    assert first["spec"]["nodeName"] == place["metadata"]["name"] != "n0"
    assert first["metadata"]["namespace"] == second["metadata"]["namespace"] != "secret-team"
    named = f"{second['metadata']['namespace']}/{second['metadata']['name']}, other"
    assert first["metadata"]["annotations"]["example.com/after"] == named
    assert first["spec"]["containers"][0]["name"] == "main"


def test_of_what_an_app_wrapper_wraps_only_the_fields_that_are_read_are_kept() -> None:
    container = {"name": "main", "image": "x", "env": [{"name": "TOKEN", "value": "hidden"}], "command": ["hidden"]}
    inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "data": {"key": "hidden"}}
    components = [{"template": inner}, {"template": secret}]
    wrapper = AppWrapper(
        metadata=ObjectMeta(name="wrap"), spec=msgspec.convert({"components": components}, AppWrapperSpec)
    )

    [found] = documents([wrapper])

    assert "hidden" not in str(found)
    kept = [each["template"] for each in found["spec"]["components"]]
    assert [each["metadata"]["name"] for each in kept] == ["a", "b"]
    assert kept[0]["spec"]["containers"] == [{"name": "main", "image": "x"}]
