"""Events about objects, as kubectl describe shows them."""

import hashlib
from collections.abc import Callable
from typing import Any

from mooring.kubeapi.api import Api
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_text
from mooring.model.spam_filter import SpamFilter

Object = dict[str, Any]
MOST_REMEMBERED = 10_000


class Recorder:
    """Writes Events; the same thing said again counts up. One source says so much of one object, as with client-go."""

    def __init__(self, api: Api, now: Callable[[], float]) -> None:
        self._api, self._now = api, now
        self._written: dict[tuple[str, ...], str] = {}
        self._spam = SpamFilter()

    def event(self, about: Object, type_: str, reason: str, message: str, source: str) -> None:
        """Say something about an object; a namespace that is going away hears nothing."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        if not self._spam.allows(f"{source}/{metadata.get('uid') or about['kind'] + metadata['name']}", self._now()):
            return
        words = (namespace, about["kind"], metadata["name"], metadata.get("uid", ""), type_, reason, message, source)
        moment = timestamp_text(self._now())
        try:
            if (name := self._written.get(words)) is not None and self._count_up(namespace, name, moment):
                return
            name = f"{metadata['name']}.{hashlib.sha256(repr((words, self._now())).encode()).hexdigest()[:16]}"
            self._api.create("events", self._make(about, namespace, name, moment, words), namespace)
        except ApiError:
            return
        if len(self._written) > MOST_REMEMBERED:
            self._written.clear()
        self._written[words] = name

    def _count_up(self, namespace: str, name: str, moment: str) -> bool:
        try:
            found = self._api.get("events", namespace, name)
        except ApiError:
            return False
        found["count"] = (found.get("count") or 1) + 1
        found["lastTimestamp"] = moment
        self._api.update("events", found)
        return True

    @staticmethod
    def _make(about: Object, namespace: str, name: str, moment: str, words: tuple[str, ...]) -> Object:
        metadata = about["metadata"]
        *_, type_, reason, message, source = words
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": type_,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": source},
            "reportingComponent": source,
            "reportingInstance": "",
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "eventTime": None,
        }
