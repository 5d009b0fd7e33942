"""Objects of every kind with one field removed or replaced: no controller raises on what the API has stored."""

import copy
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.bootstrap import bootstrap
from mooring.kubeapi.cluster import make_api
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.manager import make_controllers
from mooring.kubeapi.nodes.registration import register
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[3] / "fuzz"))

from odd_requests import Seeds

Object = dict[str, Any]
NOW = 1_800_000_000.0
OTHER: tuple[Any, ...] = (None, {}, "x")


def variants(value: Any) -> Iterator[Any]:
    """Copies of the value, each with one field or item below it removed or replaced."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        without = copy.copy(value)
        del without[key]
        yield without
        for other in (*OTHER, *variants(value[key])):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


class Plane:
    """An API with the rules of all kinds and every controller over it, in memory."""

    def __init__(self) -> None:
        self.api: Api = make_api(Store(), lambda: NOW)[0]
        admission = turn_on(self.api, Rbac(self.api))
        self.context = Context(self.api, lambda: NOW)
        controllers = make_controllers(self.context, admission.quotas)
        bootstrap(self.api, 6443)
        register(self.api, [{"metadata": {"name": "node-0"}}])
        for controller in controllers:
            controller.start()
        self.context.runner.run_until_idle()

    def store(self, resource: str, obj: Object, namespace: str) -> None:
        """Create an object, run the controllers, and delete it; an object that the API refuses is passed over."""
        try:
            name = self.api.create(resource, obj, namespace)["metadata"]["name"]
        except ApiError:
            return
        self.context.runner.run_until_idle()
        try:
            self.api.delete(resource, namespace, name, grace_period=0)
        except ApiError:
            return
        self.context.runner.run_until_idle()


def kinds() -> list[tuple[str, str, str]]:
    return sorted(Seeds().kinds())


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: "/".join(kind))
def test_controllers_take_what_is_stored(kind: tuple[str, str, str], caplog: pytest.LogCaptureFixture) -> None:
    plane = Plane()
    group, version, name = kind
    try:
        resource = plane.api.registry.of_kind(f"{group}/{version}" if group else version, name)
    except ApiError:
        pytest.skip("not served")
    namespace = "default" if resource.namespaced else ""
    seed = Seeds().of(kind)[0]
    content = {key: value for key, value in seed.items() if key not in ("apiVersion", "kind", "metadata")}
    for number, variant in enumerate(variants(content)):
        obj = {"apiVersion": seed["apiVersion"], "kind": name, "metadata": {"name": f"o-{number}"}, **variant}
        caplog.clear()
        plane.store(resource.key, obj, namespace)
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert not errors, f"{obj}\n{errors[0].getMessage()}: {errors[0].exc_info}"
