"""What a cycle may do, least disruptive first. `mooring.assembly` runs these in this order."""

from mooring.actions.admit.action import Admit
from mooring.actions.gangs.keep_whole import KeepWhole
from mooring.actions.place import Place
from mooring.actions.preempt.action import Preempt

ACTIONS = (
    Admit,  # work that queues gets quota, or gives it back
    KeepWhole,  # complete gangs that lost a member, or release them
    Place,  # pods onto free capacity, batch by batch of equal shape; gangs whole
    Preempt,  # room for those that were refused, by evicting pods of lower priority
)
