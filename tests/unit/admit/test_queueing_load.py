"""The load that throughput is measured with: every workload gets its turn."""

import pytest
from queueing_loads import make_load, run_load


@pytest.mark.parametrize("fair_sharing", [True, False], ids=["fair sharing", "by rank"])
def test_every_workload_of_a_load_is_admitted_in_the_end(fair_sharing: bool) -> None:
    load = make_load(queues=6, cohorts=2, workloads=120)
    admission = load.build(fair_sharing=fair_sharing)

    result = run_load(load, admission, most_cycles=500)

    assert result.admitted == 120 + result.preempted
    assert len(admission.ledger) == 0
    assert not admission.structure.tree.usage.any()
