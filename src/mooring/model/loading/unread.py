"""Kinds that are not read: which of them scheduling has nothing to do with, and which are only not built yet."""

from collections.abc import Iterator, Mapping

from mooring.model.objects.kinds import find_kind

_NO_CONCERN_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "cert-manager.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "gateway.networking.k8s.io",
        "kind.x-k8s.io",
        "kustomize.config.k8s.io",
        "monitoring.coreos.com",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
    }
)
_NO_CONCERN = frozenset(
    {
        *("Binding", "ConfigMap", "Endpoints", "Event", "Secret", "ServiceAccount"),
        "ControllerRevision.apps",
        "Task.tekton.dev",
        "Pipeline.tekton.dev",
        "WorkflowTemplate.argoproj.io",
        "ClusterWorkflowTemplate.argoproj.io",
        "Recommendation.analysis.koordinator.sh",
    }
)
"""Templates that others run are among them: by themselves they make no pods."""
_NOT_BUILT_GROUPS = frozenset(
    {
        "agents.x-k8s.io",
        "argoproj.io",
        "autoscaling",
        "autoscaling.k8s.io",
        "autoscaling.x-k8s.io",
        "descheduler",
        "flow.volcano.sh",
        "karpenter.sh",
        "keda.sh",
        "kubevirt.io",
        "kueue.x-k8s.io",
        "machinelearning.seldon.io",
        "nodeinfo.volcano.sh",
        "quota.koordinator.sh",
        "resource.nvidia.com",
        "scheduling.incubator.k8s.io",
        "scheduling.k8s.io",
        "scheduling.koordinator.sh",
        "scheduling.run.ai",
        "scheduling.sigs.k8s.io",
        "scheduling.volcano.sh",
        "scheduling.x-k8s.io",
        "serving.knative.dev",
        "slo.koordinator.sh",
        "sparkoperator.k8s.io",
        "tekton.dev",
        "trainer.kubeflow.org",
        "kai.scheduler",
        "kubeflow.org",
        "ray.io",
        "topology.volcano.sh",
        "topology.node.k8s.io",
    }
)


def remarks(unread: Mapping[str, int]) -> Iterator[str]:
    """A line for each of three cases, with how many objects there are of each kind; kinds are given as Kind.group."""
    cases: dict[str, dict[str, int]] = {
        "not read, of no concern to scheduling": {},
        "not read yet, though it concerns scheduling": {},
        "not read, of a kind that is not known here": {},
    }
    no_concern, not_built, unknown = cases.values()
    for kind, count in sorted(unread.items()):
        name, _, group = kind.partition(".")
        if kind in _NO_CONCERN or group in _NO_CONCERN_GROUPS:
            case = no_concern
        else:
            case = not_built if group in _NOT_BUILT_GROUPS else unknown
        shown = name if find_kind("", name) is None else kind
        case[shown] = case.get(shown, 0) + count
    for words, counts in cases.items():
        if counts:
            yield f"{words}: {', '.join(f'{count:,} {kind}' for kind, count in counts.items())}"
