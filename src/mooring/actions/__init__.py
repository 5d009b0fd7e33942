"""What a cycle may do, least disruptive first. `mooring.assembly` runs these in this order."""

from mooring.actions.place import Place

ACTIONS = (
    Place,  # pods onto free capacity, batch by batch of equal shape
)
