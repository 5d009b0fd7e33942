import math

import pytest

from mooring.model.kubelet.distributions import AT_ONCE, NEVER, Distribution, draw, parse_distribution


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("0", AT_ONCE),
        ("90s", Distribution(90.0)),
        ("never", NEVER),
        ("exponential(10m)", Distribution(600.0, 0.0, "exponential")),
        ("uniform(1m, 5m)", Distribution(60.0, 300.0, "uniform")),
        ("normal(10m, 30s)", Distribution(600.0, 30.0, "normal")),
        ("lognormal(1h, 0.5)", Distribution(3600.0, 0.5, "lognormal")),
        ("uniform(1m)", None),
        ("lognormal(1h, inf)", None),
        ("soon", None),
    ],
)
def test_durations_and_their_distributions_are_read(text: str, distribution: Distribution | None) -> None:
    assert parse_distribution(text) == distribution


def test_a_median_draw_gives_the_median() -> None:
    medians = [
        Distribution(60.0, 300.0, "uniform").at(0.5),
        Distribution(600.0, 30.0, "normal").at(0.5),
        Distribution(3600.0, 0.5, "lognormal").at(0.5),
        Distribution(100.0, 0.0, "exponential").at(0.5) / math.log(2),
        Distribution(7.0).at(0.5),
    ]

    assert medians == pytest.approx([180.0, 600.0, 3600.0, 100.0, 7.0])


def test_a_draw_depends_on_seed_and_words_alone() -> None:
    assert draw(1, "a", "b") == draw(1, "a", "b")
    assert len({draw(1, "a", "b"), draw(2, "a", "b"), draw(1, "ab", ""), draw(1, "a", "c")}) == 4
