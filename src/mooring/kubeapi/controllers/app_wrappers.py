"""AppWrappers: the objects inside are made when the wrapper may run, and removed when it is suspended.

What AppWrapper's own controller does beyond that (retries, grace periods, the health of nodes) is not done here.
"""

import copy
from collections.abc import Iterator

import msgspec

from mooring.kubeapi.controllers.conditions import is_true, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.status import ApiError, bad_request
from mooring.model.jobs.app_wrapper import IS_OVER, LABEL, WRAPPER, WRAPPER_GROUP, AppWrapper, find_template
from mooring.model.objects.job_kinds import component_pod_sets

RESOURCE = f"appwrappers.{WRAPPER_GROUP}"
_ENDING = ("jobs.batch", "jobsets.jobset.x-k8s.io", "pytorchjobs.kubeflow.org", "rayjobs.ray.io")
"""Components whose end is heard of at once; that of others with the end of their pods."""
_CONTROLLER = f"{WRAPPER_GROUP}/appwrapper-controller"


class AppWrappers(Controller):
    """Makes what is inside AppWrappers."""

    name = "appwrapper-controller"

    def start(self) -> None:
        self.follow(RESOURCE)
        self.informers.pods.on_change(self._pod_changed)
        for resource in _ENDING:
            self.follow_controlled(self.informers.of(resource), WRAPPER)

    def _pod_changed(self, old: object, new: object) -> None:
        for pod in (old, new):
            metadata = getattr(pod, "metadata", None)
            if metadata is not None and LABEL in metadata.labels:
                self.enqueue((metadata.namespace, metadata.labels[LABEL]))

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        spec, status = found.get("spec") or {}, found.get("status") or {}
        if spec.get("managedBy") in (None, "", _CONTROLLER) and status.get("phase") not in IS_OVER:
            _Turn(self, found).run()


class _Turn:
    """One look at one AppWrapper."""

    def __init__(self, controller: AppWrappers, found: Object) -> None:
        self.controller, self.api, self.wrapper = controller, controller.api, found
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        self.spec: Object = found.get("spec") or {}  # AppWrapper's definition requires neither it nor its components
        self.status: Object = copy.deepcopy(found.get("status") or {})
        self.typed = msgspec.convert(found, AppWrapper)

    def run(self) -> None:
        if self.spec.get("suspend"):
            held = list(self._held())
            for resource, component in held:
                self._delete(resource, component)
            are_gone = not held
            self.status["phase"] = "Suspended" if are_gone else "Suspending"
            self._set("QuotaReserved", "False", "Suspended")
            self._set("ResourcesDeployed", "False" if are_gone else "True", self.status["phase"])
            if not are_gone:
                self.controller.enqueue((self.namespace, self.name), 1.0)
        elif self._create():
            self._judge()
        if self.status != (self.wrapper.get("status") or {}):
            self.api.update(RESOURCE, {**self.wrapper, "status": self.status}, subresource="status")

    def _held(self) -> Iterator[tuple[str, Object]]:
        """The components that exist, with their resources."""
        for resource, document in self._documents():
            held = self.api.find(resource, self.namespace, document["metadata"]["name"])
            owners = held["metadata"].get("ownerReferences") or () if held is not None else ()
            if held is not None and any(each["uid"] == self.wrapper["metadata"]["uid"] for each in owners):
                yield resource, held

    def _documents(self) -> Iterator[tuple[str, Object]]:
        """The components as they are made, with their resources: what admission gave their pod sets is in them."""
        for raw, component in zip(self.spec.get("components") or (), self.typed.spec.components, strict=True):
            made = copy.deepcopy(raw.get("template") or {})
            metadata = made["metadata"] = made.get("metadata") or {}
            named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
            if not named or not isinstance(made.get("apiVersion"), str) or not isinstance(made.get("kind"), str):
                raise bad_request("the template of a component needs apiVersion, kind and metadata.name")
            metadata |= {"namespace": self.namespace, "ownerReferences": [owner_reference(self.wrapper)]}
            infos = raw.get("podSetInfos") or []
            for number, plan in enumerate(component_pod_sets(component)):
                template = find_template(made, plan.path)
                if template is not None:
                    _inject(template, infos[number] if number < len(infos) else {}, self.name)
            metadata["labels"] = {LABEL: self.name, **(metadata.get("labels") or {})}
            yield self.api.registry.of_kind(made["apiVersion"], made["kind"]).key, made

    def _create(self) -> bool:
        """Make what is missing; False if something was refused."""
        try:
            held = {(resource, each["metadata"]["name"]) for resource, each in self._held()}
            for resource, document in self._documents():
                if (resource, document["metadata"]["name"]) not in held:
                    self.api.create(resource, document, self.namespace)
        except ApiError as error:
            recorder, message = self.controller.context.recorder, f"Error creating a component: {error}"
            recorder.event(self.wrapper, "Warning", "FailedCreate", message, self.controller.name)
            self.controller.try_again((self.namespace, self.name))
            return False
        self._set("QuotaReserved", "True", "Admitted")
        self._set("ResourcesDeployed", "True", "Running")
        self.status["phase"] = "Running"
        return True

    def _judge(self) -> None:
        """The wrapper ends with its pods: all have succeeded, or a component has failed."""
        wanted = sum(plan.count for each in self.typed.spec.components for plan in component_pod_sets(each))
        pods = self.controller.informers.pods.list(self.namespace)
        phases = [pod.status.phase for pod in pods if pod.metadata.labels.get(LABEL) == self.name]
        is_ready = sum(phase in ("Running", "Succeeded") for phase in phases) >= wanted
        self._set("PodsReady", "True" if is_ready else "False", "Running")
        components = [held for _, held in self._held()]
        if any(is_true(held, "Failed") or (held.get("status") or {}).get("phase") == "Failed" for held in components):
            self.status["phase"] = "Failed"
            self._set("ResourcesDeployed", "False", "Failed")
            self._set("QuotaReserved", "False", "Failed")
        elif wanted and phases.count("Succeeded") >= wanted and "Running" not in phases:
            self.status["phase"] = "Succeeded"
            self._set("QuotaReserved", "False", "Succeeded")

    def _delete(self, resource: str, held: Object) -> None:
        if "deletionTimestamp" not in held["metadata"]:
            self.api.delete(resource, self.namespace, held["metadata"]["name"], propagation="Background")

    def _set(self, type_: str, value: str, reason: str) -> None:
        set_condition(self.status, type_, value, self.controller.now, reason=reason, message="")


def _inject(template: Object, info: Object, wrapper: str) -> None:
    """Add to a pod template what admission gave its pod set."""
    metadata = template["metadata"] = template.get("metadata") or {}
    spec = template["spec"] = template.get("spec") or {}
    marks = {"labels": {LABEL: wrapper, **(info.get("labels") or {})}, "annotations": info.get("annotations") or {}}
    for field, more in marks.items():
        if more:
            metadata[field] = {**(metadata.get(field) or {}), **more}
    if info.get("nodeSelector"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **info["nodeSelector"]}
    for field in ("tolerations", "schedulingGates"):
        own = spec.get(field) or []
        if added := [each for each in info.get(field) or () if each not in own]:
            spec[field] = [*own, *added]
