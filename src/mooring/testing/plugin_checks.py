"""What every plugin must pass, ours and yours.

    from mooring.testing.plugin_checks import check_plugin, parametrize_with_checks

    def test_my_plugin():
        check_plugin(MyPlugin())

    @parametrize_with_checks([MyPlugin(), MyPlugin(MyArgs(reserve=2))])  # the same, one test a check
    def test_my_plugins(plugin, check):
        check(plugin)

The checks ask about small random clusters, the same ones each time. A plugin that reads what those do not have, such
as an annotation of yours, wants clusters of its own: give `objects`, a function that makes them from choices.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.engine.plugin import Plugin
from mooring.testing import answer_checks, promise_checks, queueing_checks, supposition_checks
from mooring.testing.situations import MakeObjects, Objects, Situation, random_objects

if TYPE_CHECKING:
    import pytest

__all__ = ["Objects", "PluginCheck", "check_plugin", "parametrize_with_checks", "plugin_checks", "random_objects"]

CHECKS: tuple[Callable[[Plugin, Situation], None], ...] = (
    answer_checks.check_one_answer_a_row,
    answer_checks.check_each_row_is_answered_by_itself,
    answer_checks.check_the_same_question_gets_the_same_answer,
    answer_checks.check_asking_changes_nothing,
    answer_checks.check_scores_are_in_range,
    answer_checks.check_normalize_takes_each_score_by_itself,
    answer_checks.check_refusals_have_words,
    answer_checks.check_passes_agrees_with_filter,
    answer_checks.check_narrow_leaves_out_only_what_filter_refuses,
    answer_checks.check_queueing_is_answered,
    answer_checks.check_a_cluster_without_pods_is_answered,
    promise_checks.check_answers_change_only_with_what_it_depends_on,
    promise_checks.check_usage_elsewhere_does_not_matter,
    promise_checks.check_usage_can_be_supposed,
    promise_checks.check_a_settled_skip_stands,
    promise_checks.check_it_does_not_matter_when_pods_were_seen,
    promise_checks.check_counts_follow_pods,
    promise_checks.check_topology_keys_tell_rows_apart,
    promise_checks.check_own_counts_tell_rows_apart,
    promise_checks.check_local_counts_are_local,
    promise_checks.check_refit_equals_gathering_anew,
    promise_checks.check_one_row_a_domain_is_enough_to_refit,
    promise_checks.check_only_declared_parts_are_read,
    promise_checks.check_undeclared_labels_and_annotations_are_not_read,
    promise_checks.check_what_is_reserved_is_given_back,
    queueing_checks.check_a_refusal_ends_only_by_what_it_waits_for,
    supposition_checks.check_a_filter_knows_what_it_would_say_without_some_pods,
    supposition_checks.check_what_a_filter_asks_for_is_all_that_it_checks,
)
SEEDS = tuple(range(12))
"""Enough that every kind of term meets every kind of node; a check takes well under a second."""


@dataclass(frozen=True)
class PluginCheck:
    """One check, over all its clusters: call it with a plugin, and it raises AssertionError with the story."""

    run: Callable[[Plugin, Situation], None]
    situations: tuple[Situation, ...]

    @property
    def name(self) -> str:
        return self.run.__name__.removeprefix("check_")

    def __call__(self, plugin: Plugin) -> None:
        for situation in self.situations:
            self.run(plugin, situation)

    def __str__(self) -> str:
        return self.name


def plugin_checks(*, seeds: Iterable[int] = SEEDS, objects: MakeObjects = random_objects) -> list[PluginCheck]:
    """All checks, ready to be called with a plugin."""
    situations = tuple(Situation(seed, objects) for seed in seeds)
    return [PluginCheck(run, situations) for run in CHECKS]


def check_plugin(plugin: Plugin, *, seeds: Iterable[int] = SEEDS, objects: MakeObjects = random_objects) -> None:
    """Hold a plugin to every check; the first that fails says what was asked, and what was answered."""
    for check in plugin_checks(seeds=seeds, objects=objects):
        check(plugin)


def parametrize_with_checks(
    plugins: Sequence[Plugin], *, seeds: Iterable[int] = SEEDS, objects: MakeObjects = random_objects
) -> "pytest.MarkDecorator":
    """A pytest mark for a test of `plugin` and `check`: one test for each pair."""
    import pytest  # only those who write tests have it

    checks = plugin_checks(seeds=seeds, objects=objects)
    pairs = [
        pytest.param(plugin, check, id=f"{plugin.name}-{number}-{check.name}")
        for number, plugin in enumerate(plugins)
        for check in checks
    ]
    return pytest.mark.parametrize(("plugin", "check"), pairs)
