"""What every namespace has from the start: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`."""

from typing import ClassVar

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.status import ApiError


class _InEveryNamespace(Controller):
    """Keeps one object in each namespace that is not going away. The key is ("", namespace)."""

    resource: ClassVar[str]
    object_name: ClassVar[str]

    def start(self) -> None:
        self._namespaces = self.informers.of("namespaces")
        self._namespaces.on_change(lambda old, new: self._namespace_changed(new))
        self._kept = self.informers.of(self.resource)
        self._kept.on_change(self._object_changed)

    def _namespace_changed(self, new: Object | None) -> None:
        if new is not None:
            self.enqueue(("", new["metadata"]["name"]))

    def _object_changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        if old is not None and found is not None and found["metadata"]["name"] == self.object_name:
            self.enqueue(("", found["metadata"]["namespace"]))

    def sync(self, key: Key) -> None:
        namespace = self._namespaces.get("", key[1])
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return
        found = self._kept.get(key[1], self.object_name)
        if found is not None:
            self.mend(found)
            return
        try:
            self.api.create(self.resource, self.make(), key[1])
        except ApiError as error:
            if error.code != 409:
                raise

    def make(self) -> Object:
        raise NotImplementedError

    def mend(self, found: Object) -> None:
        """Put right what somebody changed."""


class ServiceAccounts(_InEveryNamespace):
    name = "service-account-controller"
    goes_first = True  # a pod that is created right after its namespace waits for its account
    resource, object_name = "serviceaccounts", "default"

    def make(self) -> Object:
        return {"metadata": {"name": self.object_name}}


class RootCertificates(_InEveryNamespace):
    name = "root-ca-certificate-publisher"
    resource, object_name = "configmaps", "kube-root-ca.crt"

    def make(self) -> Object:
        description = (
            "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints."
        )
        return {
            "metadata": {"name": self.object_name, "annotations": {"kubernetes.io/description": description}},
            "data": {"ca.crt": self.context.root_certificate},
        }

    def mend(self, found: Object) -> None:
        wanted = self.make()
        if found.get("data") != wanted["data"]:
            fresh = self.api.get(self.resource, found["metadata"]["namespace"], self.object_name)
            fresh["data"] = wanted["data"]
            self.api.update(self.resource, fresh)
