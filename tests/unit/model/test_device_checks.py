"""Bad input about devices: one line with the field, what was expected, and what was found."""

from typing import Any

import pytest

from mooring.errors import ManifestError
from mooring.model.loading.manifests import build_manifests

POOL = {"name": "a", "generation": 1, "resourceSliceCount": 1}


def slice_of(**spec: Any) -> dict[str, Any]:
    made = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "a", **spec}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": made}


def claim_of(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def exactly(**given: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **given}}


def class_of(expression: str) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def device(**given: Any) -> dict[str, Any]:
    return {"name": "gpu-0", **given}


CONSUMES = [{"counterSet": "memory", "counters": {"gb": {"value": "1"}}}]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            class_of("device.driver =="),
            "(DeviceClass gpu): spec.selectors[0].cel.expression: expected a CEL expression over device, found "
            "expected a value, found 'end of the expression' (column 17)",
        ),
        (
            claim_of(exactly(selectors=[{"cel": {"expression": "device.colour == 1"}}])),
            "(ResourceClaim default/c): spec.devices.requests[0].exactly.selectors[0].cel.expression: expected a CEL "
            "expression over device, found undefined field 'colour' (column 7)",
        ),
        (
            claim_of(exactly(count=-1)),
            "(ResourceClaim default/c): spec.devices.requests[0].exactly.count: expected 1 or more, found -1",
        ),
        (
            claim_of({"name": "gpu"}),
            "(ResourceClaim default/c): spec.devices.requests[0]: expected either exactly or firstAvailable, "
            "found none",
        ),
        (
            claim_of(exactly(), constraints=[{"matchAttribute": "numa"}]),
            "(ResourceClaim default/c): spec.devices.constraints[0]: expected a name with its domain, such as "
            'gpu.example.com/numa, found "numa"',
        ),
        (
            claim_of(exactly(), constraints=[{"requests": ["nic"], "matchAttribute": "x/numa"}]),
            "(ResourceClaim default/c): spec.devices.constraints[0].requests: expected the name of a request: gpu, "
            'found "nic"',
        ),
        (
            slice_of(devices=[device(consumesCounters=CONSUMES)]),
            "(ResourceSlice s): spec.devices[0].consumesCounters[0].counterSet: expected a counter set of the pool; it "
            'has none, found "memory"',
        ),
        (
            slice_of(devices=[device(attributes={"v": {"version": "1.2"}})]),
            "(ResourceSlice s): spec.devices[0].attributes.v.version: expected a semantic version such as 1.2.3, found "
            '"1.2"',
        ),
        (
            slice_of(devices=[device(), device()]),
            '(ResourceSlice s): spec.devices[1].name: expected a name of its own, found "gpu-0"',
        ),
        (
            slice_of(devices=[device(capacity={"memory": {"value": "much"}})]),
            "(ResourceSlice s): spec.devices[0].capacity.memory.value: expected a quantity such as 500m, 2 or 1.5Gi, "
            'found "much"',
        ),
        (
            slice_of(allNodes=True),
            "(ResourceSlice s): spec: expected exactly one of nodeName, nodeSelector, allNodes, "
            "perDeviceNodeSelection, found nodeName and allNodes",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_field(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError) as raised:
        build_manifests([document], source="file")

    assert str(raised.value) == f"file: document 1 {message}"


def test_a_counter_that_the_set_does_not_have_is_named() -> None:
    pool = {**POOL, "resourceSliceCount": 2}
    counters = slice_of(pool=pool, sharedCounters=[{"name": "memory", "counters": {"slots": {"value": "8"}}}])
    devices = slice_of(pool=pool, devices=[device(consumesCounters=CONSUMES)])
    devices["metadata"] = {"name": "t"}

    with pytest.raises(ManifestError) as raised:
        build_manifests([counters, devices], source="file")

    assert str(raised.value) == (
        "file: document 2 (ResourceSlice t): spec.devices[0].consumesCounters[0].counters: expected a counter of "
        'memory: slots, found "gb"'
    )


def test_the_older_form_of_requests_and_devices_means_the_same() -> None:
    old_claim = claim_of({"name": "gpu", "deviceClassName": "gpu", "count": 2})
    old_slice = slice_of(devices=[{"name": "gpu-0", "basic": {"attributes": {"numa": {"int": 1}}}}])
    for document in (old_claim, old_slice):
        document["apiVersion"] = "resource.k8s.io/v1beta1"
    new_claim, new_slice = claim_of(exactly(count=2)), slice_of(devices=[device(attributes={"numa": {"int": 1}})])

    old, new = (build_manifests(each, source="f") for each in ([old_claim, old_slice], [new_claim, new_slice]))

    def specs(manifests: Any) -> list[Any]:
        return [found.spec for found in manifests.related()]

    assert specs(old) == specs(new)
