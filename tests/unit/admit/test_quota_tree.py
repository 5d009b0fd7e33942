"""The tree of quotas: what is available where, and what a lending limit keeps at home."""

import numpy as np

from mooring.state.quota_tree import NO_PARENT, FlavorResource, Quota, QuotaTree, TreeNode
from mooring.state.undo import UndoLog

COLUMN = 0
COHORT, LENDER, BORROWER = 0, 1, 2


def make_tree(lender: Quota, borrower: Quota, cohort: Quota | None = None) -> QuotaTree:
    nodes = [
        TreeNode("cohort", quotas={COLUMN: cohort} if cohort else {}),
        TreeNode("lender", COHORT, is_queue=True, quotas={COLUMN: lender}),
        TreeNode("borrower", COHORT, is_queue=True, quotas={COLUMN: borrower}),
    ]
    return QuotaTree(nodes, [FlavorResource("default", "cpu")], UndoLog())


def test_a_queue_can_have_what_the_whole_cohort_has() -> None:
    tree = make_tree(Quota(10), Quota(5))

    assert tree.available(BORROWER, COLUMN) == 15
    assert tree.potential_of(BORROWER, COLUMN) == 15


def test_the_cohorts_own_quota_is_there_for_all() -> None:
    tree = make_tree(Quota(10), Quota(5), cohort=Quota(7))

    assert tree.available(LENDER, COLUMN) == tree.available(BORROWER, COLUMN) == 22


def test_a_borrowing_limit_caps_what_comes_from_others() -> None:
    tree = make_tree(Quota(10), Quota(5, borrowing_limit=2))

    tree.add(BORROWER, COLUMN, 6)

    assert tree.available(BORROWER, COLUMN) == 1
    assert tree.potential_of(BORROWER, COLUMN) == 7


def test_a_lending_limit_keeps_the_rest_at_home() -> None:
    tree = make_tree(Quota(10, lending_limit=4), Quota(5))

    tree.add(BORROWER, COLUMN, 9)

    assert tree.available(BORROWER, COLUMN) == 0
    assert tree.available(LENDER, COLUMN) == 6


def test_usage_within_the_part_that_is_not_lent_does_not_show_in_the_cohort() -> None:
    tree = make_tree(Quota(10, lending_limit=4), Quota(5))

    tree.add(LENDER, COLUMN, 8)

    assert tree.usage[:, COLUMN].tolist() == [2, 8, 0]
    tree.remove(LENDER, COLUMN, 3)
    assert tree.usage[:, COLUMN].tolist() == [0, 5, 0]


def test_more_held_than_there_is_leaves_nothing_rather_than_less() -> None:
    tree = make_tree(Quota(1), Quota(1))

    tree.add(LENDER, COLUMN, 5)

    assert tree.available(BORROWER, COLUMN) == 0


def test_a_queue_on_its_own_ignores_limits() -> None:
    tree = QuotaTree(
        [TreeNode("alone", is_queue=True, quotas={0: Quota(3, 0, 0)})], [FlavorResource("default", "cpu")], UndoLog()
    )

    assert tree.parent == [NO_PARENT]
    assert tree.available(0, COLUMN) == 3
    assert tree.borrow_height(0, COLUMN, 9) == (0, False)


def test_borrow_height_is_that_of_the_lowest_subtree_with_enough() -> None:
    nodes = [
        TreeNode("root", quotas={0: Quota(10)}),
        TreeNode("middle", 0, quotas={0: Quota(5)}),
        TreeNode("queue", 1, is_queue=True, quotas={0: Quota(2)}),
    ]
    tree = QuotaTree(nodes, [FlavorResource("default", "cpu")], UndoLog())

    assert [tree.borrow_height(2, 0, amount) for amount in (2, 7, 17, 18)] == [
        (0, True),
        (1, True),
        (2, False),
        (2, False),
    ]


def test_rollback_goes_back_to_the_checkpoint_and_no_further() -> None:
    tree = make_tree(Quota(10, lending_limit=4), Quota(5))
    tree.add(LENDER, COLUMN, 7)
    before = tree.usage.copy()
    with tree.what_if():
        tree.add(BORROWER, COLUMN, 2)
        tree.remove(LENDER, COLUMN, 6)

    assert np.array_equal(tree.usage, before)
