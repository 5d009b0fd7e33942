"""Worlds and choices drawn by hypothesis."""

from hypothesis import strategies as st

from mooring.testing.random_clusters import Choose, World, random_world


@st.composite
def choices(draw: st.DrawFn) -> Choose:
    """A source of choices that hypothesis can shrink: towards 0, the plainest one."""
    return lambda below: draw(st.integers(0, below - 1)) if below > 1 else 0


@st.composite
def worlds(draw: st.DrawFn, *, most_nodes: int = 10, most_templates: int = 3) -> World:
    choose = draw(choices())
    nodes, templates = draw(st.integers(1, most_nodes)), draw(st.integers(1, most_templates))
    return random_world(choose, nodes=nodes, templates=templates)
