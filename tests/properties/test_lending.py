"""What queues lend is known only within limits: every division of the pool lies within them, and some reach them."""

from collections.abc import Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mooring.report.queues.lending import lent_by_node
from mooring.state.quota_tree import NO_PARENT, FlavorResource, Quota, QuotaTree, TreeNode
from mooring.state.undo import UndoLog

COLUMN = 0


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    """A root, perhaps a cohort below it, and two to four queues; each holds no more than there is for it."""
    nodes = [TreeNode("root", quotas={COLUMN: Quota(draw(st.integers(0, 2)))})]
    if draw(st.booleans()):
        lending = draw(st.none() | st.integers(0, 3))
        nodes.append(TreeNode("inner", 0, quotas={COLUMN: Quota(draw(st.integers(0, 2)), None, lending)}))
    cohorts = len(nodes)
    for number in range(draw(st.integers(2, 4))):
        nominal = draw(st.integers(0, 4))
        lending = draw(st.none() | st.integers(0, nominal))
        parent = draw(st.integers(0, cohorts - 1))
        quota = Quota(nominal, None, lending)
        nodes.append(TreeNode(f"queue-{number}", parent, is_queue=True, quotas={COLUMN: quota}))
    tree = QuotaTree(nodes, [FlavorResource("default", "gpu")], UndoLog())
    for queue in range(cohorts, len(nodes)):
        wanted = draw(st.integers(0, 6))
        tree.add(queue, COLUMN, min(wanted, tree.available(queue, COLUMN)))
    return tree


def divisions(tree: QuotaTree, cohort: int, upward: int) -> Iterator[dict[int, int]]:
    """All ways in which what is borrowed below a cohort, and lent upward by it, comes from those below it."""
    children = [*tree.child_cohorts[cohort], *tree.child_queues[cohort]]
    idle, borrowed = {}, 0
    for child in children:
        local = int(tree.local[child, COLUMN])
        lendable = tree.subtree_of(child, COLUMN) - local
        idle[child] = max(0, lendable - max(0, tree.usage_of(child, COLUMN) - local))
        borrowed += max(0, tree.usage_of(child, COLUMN) - tree.subtree_of(child, COLUMN))
    own = tree.nominal_of(cohort, COLUMN)
    needed = min(borrowed, own + sum(idle.values())) + upward
    for parts in product(*(range(idle[child] + 1) for child in children)):
        if not 0 <= needed - sum(parts) <= own:
            continue
        here = dict(zip(children, parts, strict=True))
        below = [list(divisions(tree, child, here[child])) for child in tree.child_cohorts[cohort]]
        for deeper in product(*below):
            yield {**here, **{node: part for found in deeper for node, part in found.items()}}


@given(trees())
def test_the_limits_are_those_of_all_ways_to_divide_the_pool(tree: QuotaTree) -> None:
    found = lent_by_node(tree, COLUMN)

    ways = list(divisions(tree, 0, 0))

    assert ways, "what is borrowed comes from somewhere"
    for node, described in enumerate(tree.nodes):
        if described.parent == NO_PARENT:
            assert found[node] == (0, 0, 0, 0)
            continue
        lent = [way[node] for way in ways]
        assert (found[node].at_least, found[node].at_most) == (min(lent), max(lent))
