"""Who follows gangs, and how much is kept for somebody who does not look."""

from mooring.assembly import assemble
from mooring.model.events import GangLost, GangSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.testing.builders import make_pod


def test_of_more_gangs_than_somebody_wants_to_know_it_is_known_that_they_are_many() -> None:
    cluster = assemble().new_scheduler().cluster
    few, all_of_them = cluster.gangs.watch_few(3), cluster.gangs.watch()

    for number in range(10):
        name = f"gang-{number}"
        pod = make_pod(f"{name}-0", annotations={GANG_NAME: name})
        key = gang_key(PLAIN_KIND, "default", name)
        cluster.observe(GangSeen(Gang(key, f"default/{name}", 1)), PodSeen(pod), PodLost(pod.key), GangLost(key))
        assert (few == all_of_them, few.are_many) == (number < 3, number >= 3)

    assert (len(few), len(all_of_them)) == (0, 10)
    few.clear()
    assert not few.are_many
