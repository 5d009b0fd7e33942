"""What the selectors of one claim may cost, over all devices and requests together."""

from typing import Any

import msgspec

from mooring.model.api.claims import ResourceClaimSpec
from mooring.model.api.devices import DeviceClass
from mooring.model.devices.device import Device
from mooring.model.devices.requests import Alternative, compile_claim
from mooring.model.devices.selecting import CLAIM_COST_LIMIT, USUAL_COST

NUMBERS = "[" + ",".join(map(str, range(60))) + "]"
COSTLY = f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, a + b + c >= 0)))"
"""More than a million steps: each evaluation ends in an error, after all that a single one may cost."""
CLASSES = {"gpu": msgspec.convert({"metadata": {"name": "gpu"}, "spec": {}}, DeviceClass)}


def alternatives(*expressions: str, requests: int = 1) -> list[Alternative]:
    selectors: list[Any] = [{"cel": {"expression": text}} for text in expressions]
    asked = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}
        for number in range(requests)
    ]
    found = compile_claim(msgspec.convert({"devices": {"requests": asked}}, ResourceClaimSpec), CLASSES)
    assert not isinstance(found, str)
    return [request.alternatives[0] for request in found.requests]


def devices(count: int) -> list[Device]:
    return [Device(f"gpu-{number}", "gpu.example.com") for number in range(count)]


def test_a_claim_is_refused_once_its_selectors_have_cost_too_much() -> None:
    first, second = alternatives(COSTLY, requests=2)

    answers = [first.selects(device) for device in devices(200)]

    assert all(isinstance(each, str) for each in answers)
    assert sum("actual cost limit exceeded" in str(each) for each in answers) == 2
    assert f"cost more than {CLAIM_COST_LIMIT} steps in total" in str(answers[-1])
    assert f"cost more than {CLAIM_COST_LIMIT} steps in total" in str(second.selects(devices(1)[0]))


def test_what_one_claim_costs_counts_for_no_other() -> None:
    (costly,), (plain,) = alternatives(COSTLY), alternatives("device.driver == 'gpu.example.com'")
    for device in devices(10):
        costly.selects(device)

    assert all(plain.selects(device) is True for device in devices(1000))
    assert plain.costs.left == CLAIM_COST_LIMIT


def test_an_evaluation_counts_once_and_also_where_its_answer_was_known() -> None:
    text = f"{NUMBERS}.all(a, a >= 0)"
    (one,), (other,) = alternatives(text), alternatives(text)
    device = devices(1)[0]

    left = [(each.selects(device), each.costs.left)[1] for each in (one, one, other)]

    assert left[0] == left[1] == left[2]
    assert 0 < CLAIM_COST_LIMIT - left[0] < 1000 - USUAL_COST
