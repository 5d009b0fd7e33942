"""Nodes are bought for pods that no node fits, and given back when they are not needed."""

from provider_world import Faults, World, catalogue, node_pool

from mooring.model.decisions import Evict, Launch, Terminate

QUIET = {"kind": "CapacityPolicy", "apiVersion": "config.mooring.dev/v1alpha1", "quietSeconds": 0}


def world(*pools: object, faults: Faults | None = None, **policy: object) -> World:
    made = World([catalogue(), {**QUIET, **policy}], list(pools) or [node_pool()], faults or Faults())  # type: ignore[arg-type]
    made.begin()
    return made


def test_a_node_is_bought_for_pods_that_no_node_fits_and_goes_when_they_are_gone() -> None:
    here = world()
    here.scale("web", 3, cpu="1")
    here.run(60)
    assert not here.waiting
    assert len(here.launched) == 1
    assert here.cpus() == 4000
    here.scale("web", 0)
    here.run(60)
    assert not here.nodes
    assert not here.claims
    assert here.terminated == here.launched


def test_nothing_is_bought_twice_while_a_node_is_on_its_way() -> None:
    here = world(faults=Faults(delay=lambda: 200.0))
    here.scale("web", 3, cpu="1")
    here.run(100)
    assert len(here.launched) == 1
    here.restart()
    here.run(150)
    assert len(here.launched) == 1
    assert not here.waiting


def test_a_node_that_is_too_large_is_replaced_before_it_is_drained() -> None:
    here = world(node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    here.scale("web", 8, cpu="1.5")
    here.run(60)
    assert here.cpus() == 16000
    here.scale("web", 2, cpu="1.5")
    here.run(300)
    assert not here.waiting
    assert here.cpus() == 4000
    kinds = [type(each) for _, each in here.log if isinstance(each, Launch | Evict | Terminate)]
    assert kinds == [Launch, Launch, Evict, Evict, Terminate]


def test_a_node_stays_while_its_pods_cannot_be_evicted() -> None:
    here = world(node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    here.scale("web", 8, cpu="1.5")
    here.run(60)
    here.scale("web", 2, cpu="1.5")
    here.refuses_evictions = True
    here.run(300)
    large = here.launched[0]
    assert large in here.nodes
    assert {pod.spec.node_name for pod in here.pods.values()} == {large}


def test_budgets_let_no_node_go() -> None:
    here = world(node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]}))
    here.scale("web", 3, cpu="1")
    here.run(60)
    here.scale("web", 0)
    here.run(120)
    assert len(here.nodes) == 1


def test_a_node_is_left_alone_for_as_long_as_consolidate_after_says() -> None:
    here = world(node_pool(disruption={"consolidateAfter": "10m"}))
    here.scale("web", 3, cpu="1")
    here.run(60)
    here.scale("web", 0)
    here.run(300)
    assert len(here.nodes) == 1
    here.run(600)
    assert not here.nodes


def test_after_a_failed_launch_another_pool_is_tried() -> None:
    refusals = iter((True,))
    faults = Faults(refuse=lambda: next(refusals, False))
    here = world(node_pool("first", weight=10), node_pool("second"), faults=faults)
    here.scale("web", 3, cpu="1")
    here.run(60)
    assert not here.waiting
    assert [name.rpartition("-")[0] for name in here.launched] == ["second"]


def test_a_claim_whose_node_never_appears_is_given_up() -> None:
    never = iter((True,))
    here = world(faults=Faults(never=lambda: next(never, False)), registrationTimeoutSeconds=120, retrySeconds=10)
    here.scale("web", 3, cpu="1")
    here.run(400)
    assert not here.waiting
    assert len(here.launched) == 2
    assert here.terminated == here.launched[:1]
    assert set(here.claims) == {here.launched[1]}
