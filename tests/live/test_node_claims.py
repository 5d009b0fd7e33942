"""What several schedulers write down before they bind: who comes too late learns it from there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from kube import Kube

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.sharing.node_claims import Claim, NodeClaims
from mooring.drivers.live.sharing.sharing import Sharing
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import Failed, GangSeen, NodeSeen, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.model.keys import PodKey
from mooring.testing.builders import make_node, make_pod, make_pods, make_scheduler

PATH = "/api/v1/namespaces/default/configmaps/mooring-node-claims"
A_ON_N1, B_ON_N1 = Claim("default/a", "uid-a", "n1", 3), Claim("default/b", "uid-b", "n1", 4)


class Claimant:
    """Makes one scheduler's claims after another, and says what each is to see of pods."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, name: str, *, bound_at: int | None = 0, pods_version: int = 0, **more: Any) -> NodeClaims:
        return NodeClaims(
            self._client, name, "default", bound_at=lambda claim: bound_at, pods_version=lambda: pods_version, **more
        )


def play(cluster: Kube, story: Callable[[Claimant], Awaitable[None]]) -> dict[str, str]:
    """Play a story on an empty ConfigMap; what is written in the end."""

    async def run() -> dict[str, str]:
        async with Client(await connect(cluster.kubeconfig), "test") as client:
            try:
                await story(Claimant(client))
                found: dict[str, str] = msgspec.json.decode(await client.get(PATH)).get("data", {})
                return found
            finally:
                await client.request("DELETE", PATH)

    return asyncio.run(run())


def test_who_writes_onto_what_it_has_not_read_is_refused_and_has_read_it_then(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        first, second = claimant("first"), claimant("second")
        await first.read()
        await second.read()
        assert await first.write([A_ON_N1])
        assert not await second.write([B_ON_N1])
        assert second.foreign == {"default/a": A_ON_N1}
        assert second.news == [A_ON_N1]
        assert await second.write([B_ON_N1])

    written = play(cluster, story)
    assert written == {
        "first.0": "default/a uid-a n1 3",
        "first.alive": "0",
        "second.1": "default/b uid-b n1 4",
        "second.alive": "1",
        "horizon": "0",
    }


def test_a_pod_seen_bound_after_the_decision_is_news_all_the_same(cluster: Kube) -> None:
    """Three schedulers put five pods where four fit: the fourth came by the watch while the fifth was being claimed."""

    async def story(claimant: Claimant) -> None:
        first, second = claimant("first"), claimant("second", bound_at=7)
        await first.read()
        await second.read()
        await first.write([A_ON_N1])
        assert not await second.write([B_ON_N1])
        assert (second.foreign, second.news) == ({}, [A_ON_N1])

    play(cluster, story)


def test_claims_that_came_true_are_taken_out_and_whoever_claims_next_must_have_seen_their_pods(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        first, second = claimant("first", bound_at=7, kept_seconds=-1.0), claimant("second", pods_version=6)
        await first.read()
        await first.write([A_ON_N1])
        await second.read()
        await first.leave()
        await second.read()
        assert second.horizon == 7
        second.tidy(is_counted)
        assert second.foreign == {"default/a": A_ON_N1}, "it may have been bound: we have not looked that far"

    assert play(cluster, story) == {"horizon": "7"}


def test_claims_that_were_taken_out_and_did_not_come_true_are_forgotten(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        first, second = claimant("first"), claimant("second", pods_version=7)
        told: list[tuple[list[Claim], list[Claim]]] = []
        second.on_foreign = lambda new, failed: told.append((new, failed))
        await first.read()
        await first.write([A_ON_N1, B_ON_N1])
        await second.read()
        first.withdraw(A_ON_N1)
        await first.write([])
        await second.read()
        second.tidy(is_counted)
        assert second.foreign == {"default/b": B_ON_N1}
        assert told == [([A_ON_N1, B_ON_N1], []), ([], [A_ON_N1])]

    assert play(cluster, story) == {"first.0": "default/b uid-b n1 4", "first.alive": "1", "horizon": "0"}


def is_counted(claim: Claim) -> bool:
    return True


def test_a_pod_that_is_claimed_again_stays_claimed(cluster: Kube) -> None:
    """Its bind was refused, and it was decided to be put there again: that it was withdrawn once is over then."""

    async def story(claimant: Claimant) -> None:
        first = claimant("first")
        await first.read()
        await first.write([A_ON_N1])
        first.withdraw(A_ON_N1)
        await first.write([A_ON_N1])
        await first.write([B_ON_N1])

    written = play(cluster, story)
    assert {key: text for key, text in written.items() if key.startswith("first.")} == {
        "first.1": "default/a uid-a n1 3",
        "first.2": "default/b uid-b n1 4",
        "first.alive": "2",
    }


def test_a_claim_of_a_pod_that_is_gone_holds_no_room(cluster: Kube) -> None:
    """Its scheduler may be gone as well, and would hold the node for minutes."""

    async def story(claimant: Claimant) -> None:
        first, second = claimant("first"), claimant("second", bound_at=None, pods_version=3)
        await first.read()
        await first.write([A_ON_N1, B_ON_N1])
        await second.read()
        assert second.needed_version == 4
        second.tidy(is_counted)
        assert second.foreign == {"default/b": B_ON_N1}, "the other one may be yet to come"

    play(cluster, story)


class LosesAnswers(Client):
    """A client whose next write is carried out, and not answered."""

    is_losing = False

    async def request(self, method: str, *args: Any, **options: Any) -> bytes:
        found = await super().request(method, *args, **options)
        if self.is_losing and method == "PUT":
            self.is_losing = False
            raise ApiError(0, "Unreachable", "lost")
        return found


def test_a_write_whose_answer_was_lost_leaves_no_claims_behind(cluster: Kube) -> None:
    async def run() -> dict[str, str]:
        client = LosesAnswers(await connect(cluster.kubeconfig), "test")
        async with client:
            claims = Claimant(client)("first")
            await claims.read()
            client.is_losing = True
            assert not await claims.write([A_ON_N1])
            assert await claims.write([A_ON_N1])
            found: dict[str, str] = msgspec.json.decode(await client.get(PATH)).get("data", {})
            await client.request("DELETE", PATH)
            return found

    assert asyncio.run(run()) == {"first.1": "default/a uid-a n1 3", "first.alive": "1", "horizon": "0"}


def test_what_users_have_put_onto_the_configmap_stays_there(cluster: Kube) -> None:
    labels = {"team": "platform"}

    async def story(claimant: Claimant) -> None:
        claims = claimant("first")
        await claims.read()
        cluster.call("PATCH", PATH, {"metadata": {"labels": labels}}, "application/merge-patch+json")
        assert not await claims.write([A_ON_N1])  # it has not read that
        assert await claims.write([A_ON_N1])
        assert await claims.write([B_ON_N1])
        assert cluster.call("GET", PATH)["metadata"]["labels"] == labels

    play(cluster, story)


# What a scheduler does about them.


class Party:
    """A scheduler that shares its nodes, and what became of its binds."""

    def __init__(self, claims: NodeClaims, scheduler: Scheduler, pods_version: int = 0) -> None:
        self.scheduler = scheduler
        self.bound: list[str] = []
        self.late: list[str] = []
        self.seen: dict[str, Pod] = {}
        self.pods_version = pods_version
        self.sharing = Sharing(claims, lambda: scheduler, lambda: self.pods_version, self.seen.get)
        self.sharing.bind = lambda decision: self.bound.append(decision.pod)
        self.sharing.conflict = self._conflict
        self.sharing.tell = scheduler.handle

    def _conflict(self, decision: Bind, pod: Pod) -> None:
        self.late.append(decision.pod)
        self.scheduler.handle(Failed(decision))

    def decide(self, *pods: Pod) -> None:
        self.seen |= {pod.key: pod for pod in with_uids(list(pods))}
        self.scheduler.handle(*self.sharing.take_in([PodSeen(pod) for pod in pods]))
        for decision in self.scheduler.cycle(0.0):
            if isinstance(decision, Bind):
                self.sharing.hold(decision, self.scheduler.cluster.pods.records[PodKey(decision.pod)].pod)

    async def claim(self) -> None:
        running = asyncio.ensure_future(self.sharing.run())
        while len(self.sharing):
            await asyncio.wait({running}, timeout=0.01)
            assert not running.done()
        running.cancel()


def theirs(count: int, **given: Any) -> list[Pod]:
    return with_uids(make_pods(count, prefix="theirs", scheduler_name="other", **given))


def with_uids(pods: list[Pod]) -> list[Pod]:
    for pod in pods:
        pod.metadata.uid = f"uid-{pod.metadata.name}"
    return pods


def claims_of(pods: list[Pod], node: str) -> list[Claim]:
    return [Claim(pod.key, pod.metadata.uid, node) for pod in pods]


@pytest.mark.parametrize(
    ("free", "late"),
    [pytest.param(2, [], id="room for both"), pytest.param(1, ["default/pod-1"], id="room for one of two")],
)
def test_who_comes_later_to_a_node_gets_what_is_left_of_it(cluster: Kube, free: int, late: list[str]) -> None:
    async def story(claimant: Claimant) -> None:
        pods = theirs(4 - free, cpu=1)
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]))
        await other.read()
        await party.sharing.claims.read()
        party.decide(*make_pods(2, cpu=1), *pods)
        await other.write(claims_of(pods, "n1"))
        await party.claim()
        assert party.late == late
        assert sorted([*party.bound, *party.late]) == ["default/pod-0", "default/pod-1"]

    play(cluster, story)


def test_pods_that_mind_who_is_beside_them_are_decided_again(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        pods = theirs(1, cpu=1, host_ports=[80])
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]))
        await other.read()
        await party.sharing.claims.read()
        party.decide(make_pod("web", cpu=1, host_ports=[80]), *pods)
        await other.write(claims_of(pods, "n1"))
        await party.claim()
        assert (party.late, party.bound) == (["default/web"], [])

    play(cluster, story)


def test_room_that_others_claimed_for_a_pod_that_is_not_seen_yet_is_not_given_away(cluster: Kube) -> None:
    """Claims can be read before the pods that they are about: then nobody knows how large those are."""

    async def story(claimant: Claimant) -> None:
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]))
        await other.read()
        await other.write(claims_of(theirs(1, cpu=4), "n1"))
        await party.sharing.claims.read()
        party.decide(make_pod("web", cpu=1))
        await party.claim()
        assert (party.late, party.bound) == (["default/web"], [])

    play(cluster, story)


def test_events_wait_for_the_binds_of_others_too(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]), 7)
        await other.read()
        await party.sharing.claims.read()
        assert not party.sharing.expects_binds
        claims = claims_of(theirs(1, cpu=4), "n1")
        await other.write(claims)
        await party.sharing.claims.read()
        assert party.sharing.expects_binds
        other.withdraw(claims[0])
        await other.write([])
        await party.sharing.claims.read()
        party.sharing.take_in([])
        assert not party.sharing.expects_binds

    play(cluster, story)


def test_nothing_is_claimed_by_who_has_not_seen_the_pods_whose_claims_were_taken_out(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        nodes = [make_node("n1", cpu=4)]
        other = claimant("other", bound_at=7, kept_seconds=-1.0)
        behind, current = (
            Party(claimant("behind"), make_scheduler(nodes=nodes), 6),
            Party(claimant("current"), make_scheduler(nodes=nodes), 7),
        )
        await other.read()
        await other.write(claims_of(theirs(1, cpu=4), "n1"))
        await other.leave()
        for party in (behind, current):
            await party.sharing.claims.read()
            party.decide(make_pod("web", cpu=1))
            await party.claim()
        assert (behind.late, behind.bound, behind.sharing.is_current) == (["default/web"], [], False)
        assert (current.late, current.bound, current.sharing.is_current) == ([], ["default/web"], True)

    play(cluster, story)


def test_a_pod_that_another_claimed_and_let_go_is_bound_once(cluster: Kube) -> None:
    """It is decided on twice before anything is claimed: of two binds the second is refused, and undoes the first."""

    async def story(claimant: Claimant) -> None:
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]))
        await other.read()
        await party.sharing.claims.read()
        pod = make_pod("web", cpu=1)
        party.decide(pod)
        claims = claims_of([pod], "n1")
        await other.write(claims)
        await party.sharing.claims.read()
        party.decide()
        other.withdraw(claims[0])
        await other.write([])
        await party.sharing.claims.read()
        party.decide()
        party.decide()
        assert len(party.sharing) == 1
        await party.claim()
        assert (party.late, party.bound) == ([], ["default/web"])

    play(cluster, story)


@pytest.mark.parametrize(
    ("other", "mine", "late"),
    [
        pytest.param({"cpu": 1}, {"cpu": 1}, [], id="there is room beside"),
        pytest.param({"cpu": 4}, {"cpu": 1}, ["default/early"], id="there is none"),
        pytest.param({"cpu": 1, "host_ports": [80]}, {"cpu": 1}, ["default/early"], id="the other takes a port"),
        pytest.param({"cpu": 1}, {"cpu": 1, "host_ports": [80]}, ["default/early"], id="ours takes a port"),
    ],
)
def test_what_was_decided_before_a_pod_of_another_was_seen_is_looked_at_again(
    cluster: Kube, other: dict[str, Any], mine: dict[str, Any], late: list[str]
) -> None:
    async def story(claimant: Claimant) -> None:
        them = claimant("other", bound_at=7, kept_seconds=-1.0)
        nodes = [make_node("n1", cpu=4)]
        party = Party(claimant("us"), make_scheduler(nodes=nodes), 6)
        (bound,) = with_uids([make_pod("theirs", node="n1", **other)])
        bound.metadata.resource_version = "7"
        await them.read()
        await party.sharing.claims.read()
        party.decide(make_pod("early", **mine))
        await them.write(claims_of([bound], "n1"))
        await them.leave()
        await party.sharing.claims.read()
        party.sharing.claims.forget_news(1)  # its claim came and went between two looks
        party.pods_version = 7
        party.scheduler.handle(*party.sharing.take_in([NodeSeen(make_node("n2", cpu=4))]))
        party.decide(bound, make_pod("next", cpu=2))
        await party.claim()
        assert (party.late, party.bound[-1]) == (late, "default/next")

    play(cluster, story)


@pytest.mark.parametrize(
    ("taken", "late"), [pytest.param(1, [], id="room beside"), pytest.param(4, ["default/early"], id="no room")]
)
def test_what_is_looked_at_again_is_beside_what_was_told_since_though_nothing_was_decided(
    cluster: Kube, taken: int, late: list[str]
) -> None:
    """While a full slice waits for its claims there are no cycles, and what happens is only told."""

    async def story(claimant: Claimant) -> None:
        them = claimant("other", bound_at=7, kept_seconds=-1.0)
        party = Party(claimant("us"), make_scheduler(nodes=[make_node("n1", cpu=4)]), 6)
        (bound,) = with_uids([make_pod("theirs", node="n1", cpu=taken)])
        bound.metadata.resource_version = "7"
        await them.read()
        await party.sharing.claims.read()
        party.decide(make_pod("early", cpu=1))
        await them.write(claims_of([bound], "n1"))
        await them.leave()
        await party.sharing.claims.read()
        party.pods_version = 7
        party.scheduler.handle(*party.sharing.take_in([PodSeen(bound)]))
        await party.claim()
        assert (party.late, party.bound) == (late, [] if late else ["default/early"])

    play(cluster, story)


def test_a_gang_of_which_one_member_comes_late_is_decided_again_as_a_whole(cluster: Kube) -> None:
    async def story(claimant: Claimant) -> None:
        pods = theirs(1, cpu=4)
        members = [make_pod(f"m-{i}", cpu=4, annotations={GANG_NAME: "train"}) for i in range(2)]
        nodes = [make_node("n1", cpu=4), make_node("n2", cpu=4)]
        other, party = claimant("other"), Party(claimant("us"), make_scheduler(nodes=nodes))
        await other.read()
        await party.sharing.claims.read()
        party.scheduler.handle(GangSeen(Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", 2)))
        party.decide(*members, *pods)
        await other.write(claims_of(pods, "n1"))
        await party.claim()
        assert (sorted(party.late), party.bound) == (["default/m-0", "default/m-1"], [])

    play(cluster, story)
