"""How near to the best possible: the optimum is proven, and no policy is better than it."""

import pytest

from mooring.bench.fragmentation_runs import POLICIES
from mooring.bench.optimum import NodeKind, PodKind, Proven, Small, drawn, given_out, main, optimum

pytest.importorskip("ortools")

HALF, EIGHT, TWO = PodKind(1, 500, 1, 1), PodKind(1, 800, 1, 1), PodKind(1, 200, 1, 1)


def test_the_optimum_pairs_what_fills_a_card_where_a_policy_took_what_came() -> None:
    """One GPU each on two nodes: who fills the first with a half and a fifth has no room left for eight tenths."""
    small = Small((NodeKind(8, 1, 1),) * 2, (HALF, TWO, HALF, EIGHT))

    assert optimum(small) == Proven(2000, 2000)
    assert given_out(small, "FirstFit") == 1200


def test_the_optimum_heeds_cpu_and_whole_cards() -> None:
    whole, greedy = PodKind(4, 1000, 2, 1), PodKind(8, 1000, 1, 1)

    assert optimum(Small((NodeKind(8, 2, 1),), (greedy, greedy, HALF))) == Proven(1000, 1000)
    assert optimum(Small((NodeKind(8, 2, 1),), (whole, HALF, HALF))) == Proven(2000, 2000)


@pytest.mark.parametrize("seed", range(3))
def test_no_policy_gives_out_more_than_the_proven_optimum(seed: int) -> None:
    small = drawn(seed, nodes=4, pods=16)
    best = optimum(small)

    assert best.found == best.bound
    assert [policy for policy in POLICIES if given_out(small, policy) > best.found] == []


def test_the_command_prints_the_gap(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "3", "--pods", "12", "--clusters", "1"]) == 0

    head, best, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-1] == "GAP"
    assert best.split()[-1] == "0.00"
    assert [row.split()[0] for row in rows[: len(POLICIES)]] == list(POLICIES)
    assert rows[-1].endswith("the best possible is proven")
