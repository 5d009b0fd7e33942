"""Where a pod stands to each node pool: whether it is its own, whether it is there, and whether it may be."""

import numpy as np

from mooring.assembly import node_pools
from mooring.config.node_pools import NodePool
from mooring.engine.evaluate import Evaluation
from mooring.engine.node_pools import has_rows, own_rows, owns
from mooring.report.explain.data import PoolStanding


def pool_standings(evaluation: Evaluation, row: int) -> list[PoolStanding]:
    """Of each pool of the pod's profile, its own first; `row` is the pod's, or less than 0."""
    profile, shape = evaluation.profile, evaluation.shape
    args = node_pools({profile.name: profile}).get(profile.name)
    if args is None:
        return []
    own = [pool for pool in args.pools if owns(pool, shape)]
    others = [pool for pool in args.pools if pool not in own]
    is_confined = any(pool.policy == "Dedicated" for pool in own)
    is_home = row >= 0 and bool(own_rows(args.pools, shape, evaluation.cluster.rows(np.array([row]))).all())
    found = []
    for pool in own + others:
        is_there = row >= 0 and bool(has_rows(pool, evaluation.cluster.rows(np.array([row]))).all())
        if pool in own:
            standing = "own" if row < 0 or is_home else "spilled"
        else:
            standing = "not allowed" if is_confined or pool.policy == "Dedicated" else "allowed"
        found.append(_standing(pool, standing, is_there=is_there))
    return found


def _standing(pool: NodePool, standing: str, *, is_there: bool) -> PoolStanding:
    return PoolStanding(pool.name, pool.policy, standing, is_there, pool.reserved_percent, pool.moves_back)
