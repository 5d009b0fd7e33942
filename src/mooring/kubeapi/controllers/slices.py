"""How much a controller makes: few objects at a time, so that others have their turn, and no more than fit."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.kubeapi.controllers.controller import Controller, Object

SLICE = 100
"""Objects that one look at an owner makes or removes; then it has to wait for its next turn."""
MOST_PODS = 20_000
"""Of one owner that may have some of its pods. One look at an owner goes through all of them."""
MOST_MEMBERS = 10_000
"""Of one owner all of whose pods are worked out together."""


def at_most(controller: "Controller", owner: "Object", wanted: int, most: int = MOST_PODS) -> int:
    """How many of the objects that an owner wants are made; the owner has an event if that is not all."""
    if wanted > most:
        message = f"{owner['kind']} wants {wanted}; this control plane makes at most {most} of one object"
        controller.context.recorder.event(owner, "Warning", "TooMany", message, controller.name)
    return min(wanted, most)
