"""Configuration among manifests: it is no object of a cluster, and whoever gives it is told where to give it."""

from collections.abc import Mapping
from typing import Any

from mooring.model.api.yunikorn_queues import KIND as YUNIKORN
from mooring.model.colocation.strategy import CONFIG_KEYS, CONFIG_NAME

VOLCANO = "volcano-scheduler.conf"
SCHEDULER = "KubeSchedulerConfiguration"
_SCHEDULERS_OWN = (f"kind: {SCHEDULER}", f'"kind": "{SCHEDULER}"', f'"kind":"{SCHEDULER}"')


def configuration_without_kind(document: Mapping[str, Any]) -> str:
    """What a document without a kind is configuration of; empty if it is none that we know."""
    if "partitions" in document:
        return YUNIKORN
    named = next((name for name in (YUNIKORN, VOLCANO) if isinstance(document.get(name), str)), "")
    if named:  # the data of a ConfigMap by itself
        return named
    return VOLCANO if "tiers" in document or "actions" in document else ""


def configuration_in_map(document: Mapping[str, Any]) -> str:
    """What a ConfigMap holds configuration of; empty if of nothing that we know."""
    data = document.get("data")
    texts = {key: text for key, text in data.items() if isinstance(text, str)} if isinstance(data, dict) else {}
    if any(mark in text for text in texts.values() for mark in _SCHEDULERS_OWN):
        return SCHEDULER
    if not texts.keys().isdisjoint(CONFIG_KEYS):
        return CONFIG_NAME
    return next((name for name in (YUNIKORN, VOLCANO) if name in texts), "")
