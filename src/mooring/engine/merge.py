"""From a profile's configuration to the plugins of each extension point, by kube-scheduler's merge rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.config.scheduler import PluginRef, Plugins, PluginSet, ProfileConfig, suggestion
from mooring.errors import ConfigError

POINTS = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)


@dataclass(frozen=True)
class Enabled:
    """One plugin at one point; weight 0 means that none was given."""

    name: str
    weight: int = 0


@dataclass(frozen=True)
class Naming:
    """Where a profile's errors are, and which names it may use."""

    source: str
    field: str
    known: Sequence[str]

    def error(self, at: str, *, expected: str, found: str) -> ConfigError:
        return ConfigError(self.source, f"{self.field}.{at}", expected=expected, found=found)

    def check(self, name: str, at: str, *, also: Sequence[str] = ()) -> None:
        if name not in self.known and name not in also:
            hint = suggestion(name, self.known)
            raise self.error(at, expected=f"the name of a plugin{hint}", found=f'"{name}"')


def plugins_by_point(
    profile: ProfileConfig,
    defaults: Sequence[Enabled],
    abilities: Mapping[str, frozenset[str]],
    naming: Naming,
) -> dict[str, list[Enabled]]:
    """The plugins of every point, in the order in which they run.

    `abilities` says at which points each known plugin can run.
    """
    plugins = profile.plugins or Plugins()
    everywhere = _merge_defaults(defaults, plugins.multi_point or PluginSet(), naming)
    return {
        point: _expand(point, getattr(plugins, point) or PluginSet(), everywhere, abilities, naming) for point in POINTS
    }


def _merge_defaults(defaults: Sequence[Enabled], given: PluginSet, naming: Naming) -> list[Enabled]:
    disabled = _names(given.disabled, naming, "plugins.multiPoint.disabled", also=("*",))
    enabled = _refs(given.enabled, naming, "plugins.multiPoint.enabled")
    replaced = {plugin.name: plugin for plugin in enabled}
    merged = []
    if "*" not in disabled:
        for plugin in defaults:
            if plugin.name not in disabled:
                merged.append(replaced.pop(plugin.name, plugin))
    return merged + [plugin for plugin in enabled if plugin.name in replaced]


def _expand(
    point: str,
    given: PluginSet,
    everywhere: Sequence[Enabled],
    abilities: Mapping[str, frozenset[str]],
    naming: Naming,
) -> list[Enabled]:
    at = f"plugins.{_camel(point)}"
    disabled = _names(given.disabled, naming, f"{at}.disabled", also=("*",))
    specific = _refs(given.enabled, naming, f"{at}.enabled")
    for index, plugin in enumerate(specific):
        if point not in abilities.get(plugin.name, POINTS):
            expected = f"a plugin that can run at {_camel(point)}"
            raise naming.error(f"{at}.enabled[{index}].name", expected=expected, found=f'"{plugin.name}"')
    names_specific = {plugin.name for plugin in specific}
    names_everywhere = {plugin.name for plugin in everywhere}
    # A plugin named here that also runs everywhere keeps its place among the first; the rest of "everywhere" follows;
    # what is named only here comes last.
    first = [plugin for plugin in specific if plugin.name in names_everywhere]
    last = [plugin for plugin in specific if plugin.name not in names_everywhere]
    middle = [
        plugin
        for plugin in everywhere
        if "*" not in disabled
        and plugin.name not in disabled
        and plugin.name not in names_specific
        and point in abilities.get(plugin.name, ())
    ]
    return first + middle + last


def _names(refs: list[PluginRef] | None, naming: Naming, at: str, also: Sequence[str]) -> set[str]:
    for index, ref in enumerate(refs or ()):
        naming.check(ref.name, f"{at}[{index}].name", also=also)
    return {ref.name for ref in refs or ()}


def _refs(refs: list[PluginRef] | None, naming: Naming, at: str) -> list[Enabled]:
    found: list[Enabled] = []
    for index, ref in enumerate(refs or ()):
        field = f"{at}[{index}]"
        naming.check(ref.name, f"{field}.name")
        if ref.weight < 0:
            raise naming.error(f"{field}.weight", expected="a whole number, 0 or more", found=str(ref.weight))
        if any(plugin.name == ref.name for plugin in found):
            raise naming.error(f"{field}.name", expected="each plugin once", found=f'"{ref.name}" again')
        found.append(Enabled(ref.name, ref.weight))
    return found


def _camel(point: str) -> str:
    head, *rest = point.split("_")
    return head + "".join(word.capitalize() for word in rest)
