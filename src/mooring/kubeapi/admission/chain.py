"""The admission plugins that are on, in the order in which they are asked."""

from typing import Protocol, runtime_checkable

from mooring.kubeapi.admission.admin_access import AdminAccess
from mooring.kubeapi.admission.claim_status import ClaimStatus
from mooring.kubeapi.admission.colocation_profiles import ColocationProfiles
from mooring.kubeapi.admission.default_storage_class import DefaultStorageClass
from mooring.kubeapi.admission.default_toleration_seconds import DefaultTolerationSeconds
from mooring.kubeapi.admission.limit_ranger import LimitRanger
from mooring.kubeapi.admission.namespace_lifecycle import NamespaceLifecycle
from mooring.kubeapi.admission.pod_security import PodSecurity
from mooring.kubeapi.admission.pod_topology_labels import PodTopologyLabels
from mooring.kubeapi.admission.priority import Priority
from mooring.kubeapi.admission.quota import ResourceQuotas
from mooring.kubeapi.admission.rights import Rights
from mooring.kubeapi.admission.runtime_class import RuntimeClasses
from mooring.kubeapi.admission.service_account import ServiceAccounts
from mooring.kubeapi.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mooring.kubeapi.admission.validating_policies import ValidatingPolicies
from mooring.kubeapi.admission.vertical_autoscalers import VerticalAutoscalers
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.requests import Request


@runtime_checkable
class Mutating(Protocol):
    """A plugin that completes or changes what is asked for."""

    def mutate(self, request: Request) -> None: ...


@runtime_checkable
class Validating(Protocol):
    """A plugin that refuses some of what is asked for."""

    def validate(self, request: Request) -> None: ...


class Chain:
    """Asks all plugins in turn: first those that change, then those that refuse."""

    def __init__(self, api: Api, rbac: Rbac) -> None:
        self.quotas = ResourceQuotas(api)
        plugins: list[Mutating | Validating] = [
            Rights(api, rbac),
            NamespaceLifecycle(api),
            ServiceAccounts(api),
            PodTopologyLabels(api),
            Priority(api),
            RuntimeClasses(api),
            DefaultTolerationSeconds(),
            LimitRanger(api),
            DefaultStorageClass(api),
            StorageObjectInUseProtection(),
            # After Kubernetes' own plugins, as webhooks come.
            ColocationProfiles(api),
            VerticalAutoscalers(api),
            PodSecurity(api),
            AdminAccess(api),
            ClaimStatus(rbac),
            ValidatingPolicies(api),
            # Last: what is refused for another reason is not charged.
            self.quotas,
        ]
        self._mutating = [plugin for plugin in plugins if isinstance(plugin, Mutating)]
        self._validating = [plugin for plugin in plugins if isinstance(plugin, Validating)]

    def mutate(self, request: Request) -> None:
        for plugin in self._mutating:
            plugin.mutate(request)

    def validate(self, request: Request) -> None:
        for plugin in self._validating:
            plugin.validate(request)


def turn_on(api: Api, rbac: Rbac) -> Chain:
    """Let an API ask the plugins from now on."""
    chain = Chain(api, rbac)
    api.admission = chain
    return chain
