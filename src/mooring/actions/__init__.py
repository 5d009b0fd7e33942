"""What a cycle may do, least disruptive first. `mooring.assembly` runs these in this order."""

from mooring.actions.admit.action import Admit
from mooring.actions.gangs.keep_whole import KeepWhole
from mooring.actions.place.action import Place
from mooring.actions.preempt.action import Preempt
from mooring.actions.volcano.allocate import Share
from mooring.actions.volcano.reclaim import Reclaim

ACTIONS = (
    Admit,  # work that queues gets quota, or gives it back
    KeepWhole,  # complete gangs that lost a member, or release them
    Share,  # pods and gangs of shared queues onto free capacity, in the order of the queues' shares
    Place,  # pods onto free capacity, batch by batch of equal shape; gangs whole; room for those that are refused
    Reclaim,  # what a queue holds beyond its share, back to one that starves within its own
    Preempt,  # pods onto the room that was made for them; room for those that had no turn to make any
)
