"""The device table: who holds what, and that a trial leaves no trace."""

from mooring.model.devices.device import Capacity, Device, Pool
from mooring.model.values.quantity import NANO, Nanos
from mooring.state.devices.table import NOTHING, DeviceShare, DeviceTable, PartlyTaken, Taken
from mooring.state.undo import Trial, UndoLog


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(Device(f"gpu-{number}", "gpu.example.com") for number in range(count))


def card(memory: int) -> Device:
    return Device("card-0", "cards", capacity={"memory": Capacity(Nanos(memory * NANO))}, is_shared=True)


def test_rows_with_equal_devices_are_in_the_same_state_and_leave_it_when_one_is_taken() -> None:
    table = DeviceTable(UndoLog())
    pool = Pool("gpu.example.com", "", gpus(2))
    table.put(0, [("a", pool)])
    table.put(1, [("b", pool)])
    same = table.of_row(0) is table.of_row(1)

    table.take("claim", [DeviceShare("gpu.example.com", "b", "gpu-1")])

    assert same
    assert table.of_row(0).taken == NOTHING
    assert table.of_row(1).taken == Taken(whole=0b10)
    assert table.of_row(1).inventory is table.of_row(0).inventory


def test_amounts_of_a_card_add_up_and_come_back() -> None:
    table = DeviceTable(UndoLog())
    table.put(3, [("a", Pool("cards", "", (card(16),)))])

    table.take("pod-1", [DeviceShare("cards", "a", "card-0", (("memory", Nanos(4)),))])
    table.take("pod-2", [DeviceShare("cards", "a", "card-0", (("memory", Nanos(5)),))])
    both = table.of_row(3).taken
    table.give_back("pod-1")

    assert both == Taken(0, (PartlyTaken(0, 2, (("memory", Nanos(9)),)),))
    assert table.of_row(3).taken == Taken(0, (PartlyTaken(0, 1, (("memory", Nanos(5)),)),))


def test_what_was_tried_out_is_as_it_was() -> None:
    log = UndoLog()
    table = DeviceTable(log)
    table.put(0, [("a", Pool("gpu.example.com", "", gpus(4)))])
    table.take("old", [DeviceShare("gpu.example.com", "a", "gpu-3")])
    before = table.of_row(0)

    with Trial(log):
        table.give_back("old")
        table.take("new", [DeviceShare("gpu.example.com", "a", "gpu-3"), DeviceShare("gpu.example.com", "a", "gpu-0")])

    assert table.of_row(0) is before
    assert table.held == {"old": (DeviceShare("gpu.example.com", "a", "gpu-3"),)}


def test_devices_that_many_nodes_reach_change_for_all_of_them() -> None:
    table = DeviceTable(UndoLog())
    shared = Pool("nic.example.com", "fabric", gpus(1))
    for row in (0, 1):
        table.put(row, [("fabric", shared)])
    version = table.version

    table.take("claim", [DeviceShare("nic.example.com", "fabric", "gpu-0")])

    assert [table.of_row(row).taken for row in (0, 1)] == [Taken(whole=1)] * 2
    assert table.version > version


def test_devices_that_are_withheld_are_nobodys_and_no_claims() -> None:
    table = DeviceTable(UndoLog())
    table.put(0, [("a", Pool("gpu.example.com", "", gpus(2)))])

    table.withhold(0, 0b10)
    withheld = table.of_row(0).taken
    table.withhold(0, 0)

    assert (withheld, withheld.unavailable) == (Taken(withheld=0b10), 0b10)
    assert table.of_row(0).taken == NOTHING
