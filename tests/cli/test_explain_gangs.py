"""`mooring explain` for gangs: how many members fit where, which level is too small, who is ahead."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "gangs"

Mooring = Callable[..., Any]


def test_it_says_how_many_members_fit_and_where(mooring: Mooring) -> None:
    ran = mooring("explain", "train", "-q", "-f", EXAMPLES / "waits-whole" / "1-cluster.yaml")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "pod research/train-worker-0 waits: gang research/train: room for 12 of 16 members"
    assert lines[lines.index("GANG") + 1] == "research/train: needs 16, has 16 members, 0 running"
    worker = next(line for line in lines if line.startswith("worker"))
    assert worker.split() == [
        *("worker", "1", "nvidia.com/gpu", "16", "16", "12"),
        *("gpu-0", "4,", "gpu-1", "4,", "gpu-2", "4"),
    ]


def test_it_says_which_level_of_the_topology_is_too_small(mooring: Mooring) -> None:
    ran = mooring("explain", "insists", "-q", "-f", EXAMPLES / "topology", "-o", "json")

    gang = json.loads(ran.out)["gang"]
    assert gang["message"] == "gang research/insists: largest rack holds 32 of 48 members"
    assert gang["wants"] == "all in one example.com/rack"
    levels = {level["title"]: level["holds"] for level in gang["groups"][0]["levels"]}
    assert levels == {"topology": 56, "block": 32, "rack": 32, "node": 8}


def test_it_says_who_is_ahead(mooring: Mooring, write: Callable[..., Path]) -> None:
    first = (EXAMPLES / "waits-whole" / "1-cluster.yaml").read_text()
    file = write(first + "---" + first.rpartition("---")[2].replace("name: train", "name: later"))

    ran = mooring("explain", "later", "-q", "-f", file)

    lines = ran.out.splitlines()
    assert lines[lines.index("AHEAD OF IT") + 1] == (
        "gang research/train (16 members): gang research/train: room for 12 of 16 members"
    )


def test_a_gang_can_be_asked_for_by_its_own_name(mooring: Mooring) -> None:
    ran = mooring("explain", "gang/second", "-q", "-f", EXAMPLES / "two-gangs" / "1-cluster.yaml")

    assert ran.out.startswith("pod research/second-0-8d8h6 waits: gang research/second: room for 2 of 6 members")


def test_a_gang_that_lacks_members_says_so(mooring: Mooring, write: Callable[..., Path]) -> None:
    text = (EXAMPLES / "elastic" / "1-cluster.yaml").read_text().replace("minMember: 4", "minMember: 9")

    ran = mooring("explain", "elastic", "-q", "-f", write(text))

    assert ran.out.splitlines()[0] == (
        "pod research/elastic-0-xhqmx is behind a gate: gang research/elastic waits for its members: 8 of 9 exist"
    )
