"""What a cycle may do, least disruptive first. `mooring.assembly` runs these in this order."""

from mooring.actions.place import Place
from mooring.actions.preempt.action import Preempt

ACTIONS = (
    Place,  # pods onto free capacity, batch by batch of equal shape
    Preempt,  # room for those that were refused, by evicting pods of lower priority
)
