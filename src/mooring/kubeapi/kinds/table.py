"""Which rules are whose: the table of all resources that have some of their own."""

from collections.abc import Callable, Iterable

from mooring.kubeapi.kinds import admission_policies, cluster, data, devices, jobs, policies, storage, workloads
from mooring.kubeapi.kinds.foreign import Foreign
from mooring.kubeapi.kinds.pods import Pods
from mooring.kubeapi.kinds.services import Services
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object
from mooring.kubeapi.strategy import Strategy

STRATEGIES: dict[str, type[Standard]] = {
    "validatingadmissionpolicies.admissionregistration.k8s.io": admission_policies.ValidatingAdmissionPolicies,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": (
        admission_policies.ValidatingAdmissionPolicyBindings
    ),
    "configmaps": data.ConfigMaps,
    "endpoints": policies.Plain,
    "events": policies.Events,
    "events.events.k8s.io": policies.Events,
    "limitranges": policies.LimitRanges,
    "namespaces": cluster.Namespaces,
    "nodes": cluster.Nodes,
    "persistentvolumeclaims": storage.PersistentVolumeClaims,
    "pods": Pods,
    "podtemplates": workloads.PodTemplates,
    "replicationcontrollers": workloads.ReplicationControllers,
    "resourcequotas": policies.ResourceQuotas,
    "secrets": data.Secrets,
    "serviceaccounts": data.ServiceAccounts,
    "controllerrevisions.apps": workloads.ControllerRevisions,
    "daemonsets.apps": workloads.DaemonSets,
    "deployments.apps": workloads.Deployments,
    "replicasets.apps": workloads.ReplicaSets,
    "statefulsets.apps": workloads.StatefulSets,
    "cronjobs.batch": jobs.CronJobs,
    "jobs.batch": jobs.Jobs,
    "leases.coordination.k8s.io": policies.Leases,
    "runtimeclasses.node.k8s.io": policies.RuntimeClasses,
    "poddisruptionbudgets.policy": policies.PodDisruptionBudgets,
    "clusterrolebindings.rbac.authorization.k8s.io": policies.RoleBindings,
    "clusterroles.rbac.authorization.k8s.io": policies.Roles,
    "rolebindings.rbac.authorization.k8s.io": policies.RoleBindings,
    "roles.rbac.authorization.k8s.io": policies.Roles,
    "deviceclasses.resource.k8s.io": devices.DeviceClasses,
    "devicetaintrules.resource.k8s.io": devices.DeviceTaintRules,
    "resourceclaims.resource.k8s.io": devices.ResourceClaims,
    "resourceclaimtemplates.resource.k8s.io": devices.ResourceClaimTemplates,
    "resourcepoolstatusrequests.resource.k8s.io": devices.ResourcePoolStatusRequests,
    "resourceslices.resource.k8s.io": devices.ResourceSlices,
    "podgroups.scheduling.k8s.io": devices.PodGroups,
    "priorityclasses.scheduling.k8s.io": policies.PriorityClasses,
    "workloads.scheduling.k8s.io": devices.Workloads,
    "csidrivers.storage.k8s.io": storage.StorageDrivers,
    "csinodes.storage.k8s.io": storage.StorageDrivers,
    "storageclasses.storage.k8s.io": storage.StorageClasses,
    "volumeattachments.storage.k8s.io": storage.VolumeAttachments,
    "endpointslices.discovery.k8s.io": policies.Plain,
}
"""Others are stored by the standard rules, or by those of `model` if another project's."""


class Kinds:
    """Finds the rules of a resource; some need to see other objects, or the time."""

    def __init__(
        self,
        services: Callable[[], Iterable[Object]],
        now: Callable[[], str],
        declared: Callable[[Resource], Strategy | None] = lambda resource: None,
    ) -> None:
        self._services, self._now, self._declared = services, now, declared
        self._made: dict[str, Strategy] = {}

    def strategy_of(self, resource: Resource) -> Strategy:
        found = self._declared(resource) if resource.definition else self._made.get(resource.key)
        if found is None:
            found = self._made[resource.key] = self._make(resource)
        return found

    def _make(self, resource: Resource) -> Strategy:
        if (declared := self._declared(resource)) is not None:
            return declared
        if resource.key == "services":
            return Services(resource, self._services)
        if resource.key == "persistentvolumes":
            return storage.PersistentVolumes(resource, self._now)
        found = STRATEGIES.get(resource.key, Foreign if resource.custom else Standard)
        return found(resource)
