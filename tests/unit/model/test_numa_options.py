"""With which options of the static CPU policy a kubelet starts: every pair of them."""

from itertools import combinations
from typing import Any

import pytest

from mooring.model.numa.settings import CPU_OPTIONS
from mooring.testing.numa_conformance import answer_scenario

EXCLUDED = {
    frozenset({"full-pcpus-only", "distribute-cpus-across-cores"}),
    frozenset({"distribute-cpus-across-numa", "distribute-cpus-across-cores"}),
    frozenset({"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"}),
    frozenset({"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"}),
}
MACHINE = {
    "numa": [
        {
            "id": number,
            "memory": "8Gi",
            "distances": [10, 20] if number == 0 else [20, 10],
            "cores": [
                {"id": core, "socket": number, "cpus": [2 * core + 8 * number, 2 * core + 1 + 8 * number]}
                for core in range(4)
            ],
        }
        for number in range(2)
    ]
}


def answer(options: dict[str, str], policy: str = "static") -> dict[str, Any]:
    kubelet = {
        "cpuManagerPolicy": policy,
        "cpuManagerPolicyOptions": options,
        "kubeReserved": {"cpu": "1"},
        "topologyManagerPolicy": "best-effort",
    }
    scenario = {"id": "x", "machine": MACHINE, "kubelet": kubelet, "allocatable": {"cpu": "15"}, "steps": []}
    return answer_scenario(scenario)


@pytest.mark.parametrize("pair", list(combinations(CPU_OPTIONS, 2)), ids=" and ".join)
def test_a_kubelet_refuses_options_that_exclude_each_other(pair: tuple[str, str]) -> None:
    found = answer(dict.fromkeys(pair, "true"))

    assert ("error" in found) == (frozenset(pair) in EXCLUDED)
    if "error" in found:
        assert all(name in found["error"] for name in pair)


@pytest.mark.parametrize("pair", sorted(map(sorted, EXCLUDED)), ids=" and ".join)
def test_an_option_that_is_off_excludes_nothing(pair: list[str]) -> None:
    assert "error" not in answer({pair[0]: "true", pair[1]: "false"})


@pytest.mark.parametrize("value", ["true", "false"])
def test_without_the_static_policy_there_are_no_options(value: str) -> None:
    assert "takes no cpuManagerPolicyOptions" in answer({"full-pcpus-only": value}, policy="none")["error"]
    assert "error" not in answer({}, policy="none")
