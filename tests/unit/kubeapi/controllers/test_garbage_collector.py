from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.event_expiry import EventExpiry
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.ownership import owner_reference


def make_world() -> World:
    return World(GarbageCollector)


def config(name: str, *owners: Object, **reference: Any) -> Object:
    references = [{**owner_reference(owner), **reference} for owner in owners]
    return {"metadata": {"name": name, "ownerReferences": references}}


def names(world: World) -> list[str]:
    return [found["metadata"]["name"] for found in world.api.list("configmaps", "default")]


def test_what_loses_its_only_owner_goes_and_so_on_down() -> None:
    world = make_world()
    top = world.create("configmaps", config("top"))
    middle = world.create("configmaps", config("middle", top))
    world.create("configmaps", config("low", middle))

    world.api.delete("configmaps", "default", "top")
    world.run()

    assert names(world) == []


def test_what_has_another_owner_stays_and_forgets_the_one_that_went() -> None:
    world = make_world()
    one, other = (world.create("configmaps", config(name)) for name in ("one", "other"))
    world.create("configmaps", config("shared", one, other))

    world.api.delete("configmaps", "default", "one")
    world.run()

    assert names(world) == ["other", "shared"]
    references = world.get("configmaps", "shared")["metadata"]["ownerReferences"]
    assert [one["name"] for one in references] == ["other"]


def test_orphans_stay_without_their_owner() -> None:
    world = make_world()
    top = world.create("configmaps", config("top"))
    world.create("configmaps", config("low", top))

    world.api.delete("configmaps", "default", "top", propagation="Orphan")
    world.run()

    assert names(world) == ["low"]
    assert "ownerReferences" not in world.get("configmaps", "low")["metadata"]


def test_in_the_foreground_an_owner_waits_for_those_that_block_it() -> None:
    world = make_world()
    top = world.create("configmaps", config("top"))
    pod = {"metadata": {**config("slow", top)["metadata"], "annotations": {"mooring.dev/stop-delay": "10s"}}}
    world.create("pods", {**pod, "spec": template()["spec"]})
    world.run(1)

    world.api.delete("configmaps", "default", "top", propagation="Foreground")
    world.run(5)
    during = names(world), list(world.phases())
    world.run(10)

    assert during == (["top"], ["slow"])
    assert (names(world), world.phases()) == ([], {})


def test_a_circle_of_owners_is_broken() -> None:
    world = make_world()
    made = {name: world.create("configmaps", config(name)) for name in ("a", "b", "c")}
    for name, owner in (("a", "c"), ("b", "a"), ("c", "b")):
        found = world.get("configmaps", name)
        found["metadata"]["ownerReferences"] = [owner_reference(made[owner])]
        world.api.update("configmaps", found)

    world.api.delete("configmaps", "default", "a", propagation="Foreground")
    world.run()

    assert names(world) == []


def test_an_owner_of_an_unknown_kind_deletes_nothing() -> None:
    world = make_world()
    stranger = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "nobody"}}
    world.create("configmaps", config("low", stranger))

    world.run()

    assert names(world) == ["low"]


def test_events_are_kept_for_an_hour_from_when_they_happened_last() -> None:
    world = World(EventExpiry)
    pod = world.create("pods", {"metadata": {"name": "p"}, "spec": template()["spec"]})
    recorder = world.context.recorder
    recorder.event(pod, "Normal", "Once", "happened", "test")
    recorder.event(pod, "Normal", "Again", "happened", "test")
    world.run(1800)
    recorder.event(pod, "Normal", "Again", "happened", "test")
    world.run(2000)

    left = [event["reason"] for event in world.api.list("events", "default") if event["source"]["component"] == "test"]

    assert left == ["Again"]
