"""How many examples a property needs that needs more or fewer than the others."""

from hypothesis import settings

USUAL = 60
"""Of the profile that runs before a change is merged."""


def examples(count: int) -> settings:
    """So many examples, in proportion where the profile that runs takes fewer or more than usual: a decorator."""
    return settings(max_examples=max(1, count * settings().max_examples // USUAL), deadline=None)
