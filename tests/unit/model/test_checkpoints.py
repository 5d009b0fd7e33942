"""The annotation that says when a pod last saved its workload."""

import pytest
from manifest_builders import pod_document

from mooring.errors import ManifestError
from mooring.model.loading.manifests import build_manifests


def test_a_checkpoint_that_is_no_time_is_refused() -> None:
    document = pod_document()
    document["metadata"]["annotations"] = {"mooring.dev/last-checkpoint": "yesterday"}

    with pytest.raises(ManifestError) as caught:
        build_manifests([document], "a.yaml")

    assert str(caught.value) == (
        "a.yaml: document 1 (Pod default/web): metadata.annotations.mooring.dev/last-checkpoint: "
        'expected a time such as 2026-01-31T09:30:00Z, found "yesterday"'
    )


def test_a_checkpoint_with_an_offset_is_read() -> None:
    document = pod_document()
    document["metadata"]["annotations"] = {"mooring.dev/last-checkpoint": "2026-01-31T09:30:00+01:00"}

    assert len(build_manifests([document], "a.yaml").pods) == 1
