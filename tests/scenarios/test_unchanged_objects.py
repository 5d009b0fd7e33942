"""News that changes nothing that matters is no news: nobody is woken, nothing is built again."""

import pytest
from msgspec.structs import replace

from mooring.model.api.kueue import AdmissionCheck, AdmissionCheckStatus
from mooring.model.api.meta import Condition, Namespace, ObjectMeta
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.model.api.volcano_queue import Queue, QueueStatus
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.decisions import Wait
from mooring.model.events import ObjectLost, ObjectSeen, Related, WorkloadLost, WorkloadSeen
from mooring.testing.builders import make_cluster, make_node, make_pod, make_replica_set, make_scheduler, make_service
from mooring.testing.queueing_builders import make_group, make_local_queue, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job, waits

STATUS = PodDisruptionBudgetStatus(disruptions_allowed=1, current_healthy=3)
BUDGET = PodDisruptionBudget(
    metadata=ObjectMeta(name="web", namespace="default"),
    spec=PodDisruptionBudgetSpec(max_unavailable=1),
    status=STATUS,
)
CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default"))
QUEUE = Queue(metadata=ObjectMeta(name="team"), status=QueueStatus(state="Open", allocated={"cpu": 1}))


SERVICE = make_service("web", selector={"app": "web"})
NAMESPACE = Namespace(metadata=ObjectMeta(name="team", labels={"tier": "gold"}))


def noted(found: Related) -> Related:
    """The same object with a note that somebody keeps there."""
    return replace(found, metadata=replace(found.metadata, annotations={"example.com/note": "seen"}))


def make_check(message: str, *, status: str = "True") -> AdmissionCheck:
    said = Condition(type="Active", status=status, reason="Said", message=message)
    return AdmissionCheck(metadata=ObjectMeta(name="check"), status=AdmissionCheckStatus(conditions=[said]))


def written_again(found: Related) -> Related:
    """The same object as the API server shows it when somebody has written it anew."""
    annotations = {**(found.metadata.annotations or {}), "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    metadata = replace(found.metadata, resource_version="7", generation=3, annotations=annotations)
    first = replace(found, metadata=replace(metadata, resource_version="6", generation=2))
    return replace(first, metadata=metadata)


def on_a_cluster(found: Related) -> Related:
    return replace(found, metadata=replace(found.metadata, resource_version="1"))


@pytest.mark.parametrize(
    "found",
    [BUDGET, CLAIM, QUEUE, make_service("web", selector={"app": "web"}), make_queue(), make_local_queue("queue")],
    ids=lambda found: found.kind,
)
def test_an_object_written_again_without_a_change_raises_no_version(found: Related) -> None:
    cluster = make_cluster(related=[on_a_cluster(found)])
    versions = (cluster.related.version, cluster.tenants.version)

    cluster.observe(ObjectSeen(written_again(found)))

    assert (cluster.related.version, cluster.tenants.version) == versions


@pytest.mark.parametrize(
    ("found", "changed"),
    [
        pytest.param(BUDGET, replace(BUDGET, status=replace(STATUS, current_healthy=2)), id="healthy pods"),
        pytest.param(QUEUE, replace(QUEUE, status=QueueStatus(state="Open", allocated={"cpu": 9})), id="allocated"),
        pytest.param(
            make_replica_set("web", labels={"app": "web"}),
            replace(
                (found := make_replica_set("web", labels={"app": "web"})),
                spec=replace(found.spec, replicas=9),
            ),
            id="replicas",
        ),
        pytest.param(BUDGET, replace(BUDGET, status=replace(STATUS, disrupted_pods={})), id="no disrupted pods"),
        pytest.param(SERVICE, noted(SERVICE), id="annotations of a service"),
        pytest.param(NAMESPACE, noted(NAMESPACE), id="annotations of a namespace"),
        pytest.param(make_check("since noon"), make_check("since one"), id="what is said of a check"),
    ],
)
def test_what_nobody_decides_by_raises_no_version(found: Related, changed: Related) -> None:
    cluster = make_cluster(related=[found])
    versions = (cluster.related.version, cluster.tenants.version)

    cluster.observe(ObjectSeen(changed))

    assert (cluster.related.version, cluster.tenants.version) == versions


def test_a_check_that_is_no_longer_active_raises_the_version() -> None:
    cluster = make_cluster(related=[make_check("ready")])
    version = cluster.tenants.version

    cluster.observe(ObjectSeen(make_check("lost", status="False")))

    assert cluster.tenants.version == version + 1


@pytest.mark.parametrize(
    ("found", "changed"),
    [
        pytest.param(BUDGET, replace(BUDGET, status=replace(STATUS, disruptions_allowed=0)), id="disruptions"),
        pytest.param(CLAIM, replace(CLAIM, status=replace(CLAIM.status, phase="Bound")), id="phase"),
        pytest.param(QUEUE, replace(QUEUE, status=QueueStatus(state="Closed")), id="state"),
    ],
)
def test_a_status_that_scheduling_reads_is_a_change(found: Related, changed: Related) -> None:
    cluster = make_cluster(related=[found])
    version = cluster.related.version

    cluster.observe(ObjectSeen(changed))

    assert cluster.related.version == version + 1


def test_an_object_that_was_not_there_is_not_missed() -> None:
    cluster = make_cluster()

    cluster.observe(ObjectLost("Service", "default/web"), ObjectLost("ClusterQueue", "queue"), WorkloadLost("a/b"))

    assert (cluster.related.version, cluster.tenants.version, cluster.tenants.position) == (0, 0, 0)


def test_an_unchanged_budget_does_not_wake_a_parked_pod() -> None:
    # It waits for its volume's claim: what helps it is among the related objects.
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = make_pod("a", spec={"volumes": volumes})
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[pod], related=[on_a_cluster(BUDGET)])
    assert [type(found) for found in scheduler.cycle(0.0)] == [Wait]

    scheduler.handle(ObjectSeen(written_again(BUDGET)))
    assert scheduler.cycle(100.0, at_most=0) == []
    asleep = len(scheduler.queue)
    scheduler.handle(ObjectSeen(CLAIM))
    scheduler.cycle(200.0, at_most=0)

    assert (asleep, len(scheduler.queue)) == (0, 1)


def test_a_status_update_of_a_cluster_queue_builds_nothing_again() -> None:
    queue = make_queue("queue", make_group(default=make_quota(2)))
    world = TenantWorld([queue], [make_job("first", cpu=2, second=1), make_job("second", cpu=2, second=2)])
    world.settle()
    structure, version = world.admission.structure, world.scheduler.cluster.tenants.version

    world.show(replace(queue, metadata=replace(queue.metadata, resource_version="", generation=9)))
    world.settle()

    assert world.admission.structure is structure
    assert world.scheduler.cluster.tenants.version == version


def test_an_unchanged_workload_is_not_looked_at_again() -> None:
    job = make_job("first")
    world = TenantWorld([make_queue()], [job])
    world.settle()
    tenants = world.scheduler.cluster.tenants
    position = tenants.position

    world.scheduler.handle(WorkloadSeen(job.queued))
    decisions = world.cycle()

    assert tenants.touched(position) == []
    assert waits(decisions) == {}
