"""What simulated containers use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.kubelet.usage import container_usage, node_usage, unreadable_usage

CONTAINER: dict[str, Any] = {"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
CPU, KWOK = "mooring.dev/usage-cpu", "kwok.x-k8s.io/usage-cpu"


@pytest.mark.parametrize(
    ("annotations", "millis"),
    [
        ({}, 500),
        ({CPU: "250m"}, 250),
        ({CPU: "2"}, 2000),
        ({CPU: "40%"}, 200),
        ({CPU: "150%"}, 750),
        ({KWOK: "7m"}, 7),
        ({KWOK: "7m", CPU: "8m"}, 8),
        ({CPU: "8m", f"{CPU}.main": "9m"}, 9),
        ({CPU: "8m", f"{CPU}.other": "9m"}, 8),
        ({CPU: "much"}, 500),
        ({CPU: "-1"}, 500),
        ({CPU: "much", KWOK: "7m"}, 7),
    ],
)
def test_annotations_say_what_a_container_uses(annotations: dict[str, str], millis: int) -> None:
    assert container_usage(annotations, CONTAINER) == {"cpu": millis, "memory": 1 << 30}


def test_a_container_without_requests_uses_nothing() -> None:
    assert container_usage({}, {"name": "main"}) == {"cpu": 0, "memory": 0}


def test_a_node_uses_what_it_says_besides_its_pods() -> None:
    assert node_usage({"mooring.dev/usage-memory": "2Gi", CPU: "50%"}) == {"cpu": 0, "memory": 2 << 30}


def test_what_cannot_be_read_is_said() -> None:
    pod = {"metadata": {"annotations": {CPU: "much", f"{KWOK}.side": "-1", "mooring.dev/usage-memory": "30%"}}}

    assert unreadable_usage(pod) == [
        f"annotation {CPU}: expected an amount such as 250m or 1Gi, or a share of what is requested such as 40%, "
        "found 'much'",
        f"annotation {KWOK}.side: expected an amount such as 250m or 1Gi, or a share of what is requested such as 40%, "
        "found '-1'",
    ]


@given(st.text(max_size=12))
def test_no_text_makes_usage_negative_or_raises(text: str) -> None:
    usage = container_usage({CPU: text, "mooring.dev/usage-memory": text}, CONTAINER)

    assert usage["cpu"] >= 0
    assert usage["memory"] >= 0
    is_unread = bool(unreadable_usage({"metadata": {"annotations": {CPU: text}}}))
    assert not is_unread or usage["cpu"] == 500
