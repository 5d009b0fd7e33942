"""Files, folders, lists and standard input."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from manifest_builders import node_document, pod_document

from mooring.errors import ManifestError
from mooring.model.api.pods import Container, Pod, PodSpec
from mooring.model.loading.manifests import build_manifests, load_manifests

POD_YAML = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers: [{name: main}]
"""


def names(objects: list[Pod]) -> list[str]:
    return [found.metadata.name for found in objects]


def refusal(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        load_manifests([path])
    return str(caught.value)


def test_a_yaml_file_holds_several_documents_and_empty_ones_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(f"# nothing\n---\n---{POD_YAML % 'a'}---{POD_YAML % 'b'}---\n")

    assert names(load_manifests([file]).pods) == ["a", "b"]


def test_a_folder_is_read_recursively_by_name(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.yml").write_text(POD_YAML % "in-b")
    (tmp_path / "a.json").write_text(json.dumps(pod_document("in-a")))
    (tmp_path / "notes.txt").write_text("not a manifest")

    assert names(load_manifests([tmp_path]).pods) == ["in-a", "in-b"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO((POD_YAML % "piped").encode())))

    assert names(load_manifests(["-"]).pods) == ["piped"]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_lists_are_flattened_and_their_items_may_leave_the_kind_to_the_list(tmp_path: Path, suffix: str) -> None:
    bare = pod_document("b")
    del bare["kind"], bare["apiVersion"]
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [bare]}
    file = tmp_path / f"list.{suffix}"
    file.write_text(json.dumps({"kind": "List", "items": [pod_document("a"), pods, node_document()]}))

    manifests = load_manifests([file])

    assert names(manifests.pods) == ["a", "b"]
    assert [node.name for node in manifests.nodes] == ["node"]


def test_yaml_and_json_of_the_same_objects_give_equal_manifests(tmp_path: Path) -> None:
    documents = [pod_document(tolerations=[{"key": "a"}]), node_document()]
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "items": documents}))
    (tmp_path / "a.yaml").write_text("\n---\n".join(json.dumps(document) for document in documents))

    from_json, from_yaml = load_manifests([tmp_path / "a.json"]), load_manifests([tmp_path / "a.yaml"])

    assert from_json == from_yaml == build_manifests(documents)


def test_kinds_that_scheduling_does_not_read_are_counted_with_their_group() -> None:
    manifests = build_manifests(
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
            {"apiVersion": "hpc.example.com/v1", "kind": "Job", "metadata": {"name": "c"}},
        ]
    )

    assert manifests.ignored == {"ConfigMap": 2, "Job.hpc.example.com": 1}


def test_null_means_absent() -> None:
    document = pod_document(nodeName=None, nodeSelector={"gpu": None}, affinity=None, priority=None)

    (pod,) = build_manifests([document]).pods

    assert (pod.spec.node_name, pod.spec.node_selector) == ("", {"gpu": ""})


def test_a_date_in_yaml_is_text(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text((POD_YAML % "a").replace("{name: a}", "{name: a, creationTimestamp: 2024-01-02T03:04:05Z}"))

    assert load_manifests([file]).pods[0].metadata.creation_timestamp == "2024-01-02T03:04:05Z"


def test_typed_objects_are_taken_as_documents() -> None:
    pod = Pod(spec=PodSpec(containers=[Container(name="main")]))
    pod.metadata.name = "typed"

    assert [found.key for found in build_manifests([pod]).pods] == ["default/typed"]


def test_generated_names_are_counted() -> None:
    document = pod_document("")
    document["metadata"] = {"generateName": "run-"}

    assert names(build_manifests([document, document]).pods) == ["run-0", "run-1"]


def test_malformed_yaml_is_refused_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"

    assert refusal(file, f"{POD_YAML % 'a'}---\nkind: [Pod\nname: x\n") == (
        f"{file}: document 2: line 9, column 5: expected YAML, found "
        "while parsing a flow sequence did not find expected ',' or ']'"
    )


def test_malformed_json_is_refused_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"

    assert refusal(file, '{"kind": "Pod",\n "metadata": }') == (
        f"{file}: line 2, column 14: expected JSON, found expecting value"
    )


def test_a_document_that_is_no_object_is_refused(tmp_path: Path) -> None:
    yaml_file, json_file = tmp_path / "a.yaml", tmp_path / "a.json"

    assert refusal(yaml_file, "just text") == f'{yaml_file}: document 1: expected an object, found "just text"'
    assert refusal(json_file, "[1]") == f"{json_file}: expected an object, found a list"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifests([tmp_path / "no.yaml"])

    assert str(caught.value) == f"{tmp_path}/no.yaml: expected a readable file, found no such file or directory"


def test_a_folder_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifests([tmp_path])

    assert str(caught.value) == f"{tmp_path}: expected a folder with *.yaml, *.yml or *.json files, found none"


def test_a_problem_in_a_list_is_told_with_its_item(tmp_path: Path) -> None:
    file = tmp_path / "list.json"

    assert refusal(file, json.dumps({"kind": "List", "items": [pod_document("a"), pod_document(containers=[])]})) == (
        f"{file} (Pod default/web): items[1].spec.containers: expected at least one container, found none"
    )


def test_the_first_place_of_a_duplicate_is_named() -> None:
    with pytest.raises(ManifestError) as caught:
        build_manifests([node_document(), pod_document(), pod_document()], "a.yaml")

    assert str(caught.value) == (
        "a.yaml: document 3 (Pod default/web): metadata.name: expected a name that is not taken, "
        "found Pod default/web, which a.yaml: document 2 has already"
    )


def test_the_same_name_in_two_namespaces_is_no_duplicate() -> None:
    other = pod_document()
    other["metadata"]["namespace"] = "prod"

    assert [pod.key for pod in build_manifests([pod_document(), other]).pods] == ["default/web", "prod/web"]
