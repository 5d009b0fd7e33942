"""Queueing hints: whether an object that changed can help pods of a shape that was refused.

`helped_by` says which kinds of changes matter to a plugin, once for all. A plugin may also look at the object itself
(`is_helped_by`); those that refused the shape are asked, as in kube-scheduler.
"""

from collections.abc import Callable
from typing import TypeAlias

from mooring.engine.asking import ask_is_helped_by
from mooring.engine.evaluate import evaluate
from mooring.engine.plugin import Change, Changed, FilterAnswers
from mooring.engine.profile import Profile
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

Hint: TypeAlias = Callable[[Changed], bool]


def queueing_hint(profile: Profile, cluster: Cluster, shape: Shape) -> Hint | None:
    """What the plugins that refuse a shape now say about objects that change; None if none of them looks at any."""
    if not any(looks_at_objects(plugin) for plugin in profile.filters):
        return None
    names = evaluate(profile, cluster, shape).refusing_plugins()
    refusing = [plugin for plugin in profile.filters if plugin.name in names]
    if len(refusing) < len(names) or not any(map(looks_at_objects, refusing)):
        return None
    return lambda changed: any(_is_helped(plugin, shape, changed) for plugin in refusing)


def _is_helped(plugin: FilterAnswers, shape: Shape, changed: Changed) -> bool:
    if not plugin.helped_by & changed.change:
        return bool(changed.change & Change.NODE)  # a new one may take what the others refuse
    return ask_is_helped_by(plugin, shape, changed)


def looks_at_objects(plugin: FilterAnswers) -> bool:
    return type(plugin).is_helped_by is not FilterAnswers.is_helped_by
