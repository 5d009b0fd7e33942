"""ElasticQuotas, of scheduler-plugins and of Koordinator: which pods count in them, and how they are shared."""

from operator import attrgetter

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.elastic_quota.queues import compile_quotas
from mooring.actions.shares.elastic_quota.runtime import RUNTIME
from mooring.actions.shares.family import Family
from mooring.actions.shares.settings import ShareSettings
from mooring.model.api.elastic_quota import ElasticQuota
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord


class ElasticQuotaFamily(Family):
    """Those of scheduler-plugins, beside each other."""

    name = "CapacityScheduling"
    kind = "ElasticQuota"
    objects = attrgetter("elastic_quotas")
    is_koordinator = False

    def is_own(self, found: ElasticQuota) -> bool:
        return found.is_koordinator == self.is_koordinator

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        quota = cluster.related.quota_of(record.pod)
        return quota.key if quota is not None and quota.is_koordinator == self.is_koordinator else ""

    def queues(self, cluster: Cluster) -> list[QueueSpec]:
        own = filter(self.is_own, cluster.related.elastic_quotas.values())
        return compile_quotas(own, is_tree=self.is_koordinator)


class KoordinatorFamily(ElasticQuotaFamily):
    """Koordinator's, a tree."""

    name = "ElasticQuota"
    is_koordinator = True


def elastic_quota_settings(volcano: ShareSettings) -> ShareSettings:
    return ShareSettings(division=BY_SPEC, minimum_runtime_seconds=volcano.minimum_runtime_seconds, preempts=True)


def koordinator_settings(volcano: ShareSettings) -> ShareSettings:
    return ShareSettings(
        division=RUNTIME,
        minimum_runtime_seconds=volcano.minimum_runtime_seconds,
        preempts=True,
        # Koordinator's scheduler runs kube-scheduler's own preemption after that of its quotas.
        preempts_like_others=True,
    )
