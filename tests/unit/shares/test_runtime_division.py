"""How Koordinator's quotas divide a resource: minimums first, then by weight."""

import pytest

from mooring.actions.shares.elastic_quota.dividing import Claim, scaled_minimums, share_out


@pytest.mark.parametrize(
    ("total", "claims", "expected"),
    [
        pytest.param(10, [Claim(4, 9, 1), Claim(2, 9, 1)], [6, 4], id="beyond-minimums-by-weight"),
        pytest.param(10, [Claim(4, 1, 1), Claim(2, 9, 1)], [1, 9], id="lends-what-it-does-not-ask-for"),
        pytest.param(10, [Claim(4, 1, 1, lends=False), Claim(2, 9, 1)], [4, 6], id="keeps-its-min"),
        pytest.param(10, [Claim(0, 2, 5), Claim(0, 9, 1), Claim(0, 9, 1)], [2, 5, 3], id="gives-back-a-surplus"),
        pytest.param(4, [Claim(0, 9, 1), Claim(0, 9, 1), Claim(0, 9, 1)], [2, 1, 1], id="no-more-than-there-is"),
        pytest.param(10, [Claim(1, 9, 0), Claim(1, 9, 0)], [1, 1], id="no-weight"),
        pytest.param(3, [Claim(4, 9, 1), Claim(4, 9, 1)], [4, 4], id="minimums-before-the-total"),
    ],
)
def test_shares(total: int, claims: list[Claim], expected: list[int]) -> None:
    assert share_out(total, claims) == expected


def test_minimums_are_scaled_to_what_there_is() -> None:
    assert scaled_minimums(10, [4, 6]) == [4, 6]
    assert scaled_minimums(5, [4, 6]) == [2, 3]
    assert scaled_minimums(-1, [4, 6]) == [0, 0]
