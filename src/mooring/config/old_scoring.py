"""The older spelling of scoring strategies, rewritten to today's.

Before v1beta2, how full nodes should be was chosen by enabling NodeResourcesMostAllocated or
NodeResourcesLeastAllocated as plugins of their own. People still have such files; they mean the scoring strategy of
that name in NodeResourcesFit, with that weight and those resources.
"""

from typing import Any

from mooring.config.scheduler import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from mooring.errors import ConfigError

STRATEGY_OF = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
}
FIT = "NodeResourcesFit"
BALANCED = "NodeResourcesBalancedAllocation"


def rewrite(profile: ProfileConfig, source: str, field: str) -> ProfileConfig:
    """Return the profile in today's spelling; the same one if it is in that already."""
    plugins = profile.plugins or Plugins()
    sets = [plugins.multi_point, plugins.score]
    enabled = [ref for found in sets if found for ref in found.enabled or () if ref.name in STRATEGY_OF]
    disabled = [ref for found in sets if found for ref in found.disabled or () if ref.name in STRATEGY_OF]
    arguments = [config for config in profile.plugin_config or () if config.name in STRATEGY_OF]
    if not (enabled or disabled or arguments):
        return profile
    names = {ref.name for ref in enabled} or {config.name for config in arguments}
    if len(names) > 1:
        raise ConfigError(
            source, f"{field}.plugins.score.enabled", expected="one scoring strategy", found=" and ".join(sorted(names))
        )
    weight = max((ref.weight for ref in enabled), default=0)
    score = _score_set(plugins.score or PluginSet(), bool(enabled), bool(disabled), weight)
    changed = {**_as_fields(plugins), "score": score, "multi_point": _without_old(plugins.multi_point)}
    return ProfileConfig(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        plugins=Plugins(**changed),
        plugin_config=_arguments(profile.plugin_config or [], names, arguments),
    )


def with_strategy(profile: ProfileConfig, strategy: dict[str, Any]) -> ProfileConfig:
    """The profile with a scoring strategy, and nothing beside it that scores how full nodes are, unless it says how
    itself."""
    configs = profile.plugin_config or []
    if any(config.name == FIT and "scoringStrategy" in (config.args or {}) for config in configs):
        return profile
    given = next((config.args or {} for config in configs if config.name == FIT), {})
    plugins = profile.plugins or Plugins()
    score = plugins.score or PluginSet()
    disabled = [*(score.disabled or ()), PluginRef(name=BALANCED)]
    changed = {**_as_fields(plugins), "score": PluginSet(enabled=score.enabled, disabled=disabled)}
    others = [config for config in configs if config.name != FIT]
    return ProfileConfig(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        plugins=Plugins(**changed),
        plugin_config=[*others, PluginConfig(name=FIT, args={**given, "scoringStrategy": strategy})],
    )


def _score_set(given: PluginSet, is_enabled: bool, is_disabled: bool, weight: int) -> PluginSet:
    kept = _without_old(given) or PluginSet()
    enabled, disabled = list(kept.enabled or ()), list(kept.disabled or ())
    if is_enabled:
        enabled = [ref for ref in enabled if ref.name != FIT]
        enabled.append(PluginRef(name=FIT, weight=weight))
    elif is_disabled:
        # The old default scorer switched off and none put in its place: the node's fullness is not scored.
        disabled.append(PluginRef(name=FIT))
    return PluginSet(enabled=enabled, disabled=disabled)


def _without_old(given: PluginSet | None) -> PluginSet | None:
    if given is None:
        return None
    return PluginSet(
        enabled=[ref for ref in given.enabled or () if ref.name not in STRATEGY_OF],
        disabled=[ref for ref in given.disabled or () if ref.name not in STRATEGY_OF],
    )


def _arguments(given: list[PluginConfig], names: set[str], old: list[PluginConfig]) -> list[PluginConfig]:
    kept = [config for config in given if config.name not in STRATEGY_OF]
    if not names:
        return kept
    (name,) = names
    strategy: dict[str, Any] = {"type": STRATEGY_OF[name]}
    for config in old:
        if config.name == name and (config.args or {}).get("resources"):
            strategy["resources"] = (config.args or {})["resources"]
    for index, config in enumerate(kept):
        if config.name == FIT:
            kept[index] = PluginConfig(name=FIT, args={**(config.args or {}), "scoringStrategy": strategy})
            return kept
    return [*kept, PluginConfig(name=FIT, args={"scoringStrategy": strategy})]


def _as_fields(plugins: Plugins) -> dict[str, Any]:
    return {name: getattr(plugins, name) for name in plugins.__struct_fields__}
