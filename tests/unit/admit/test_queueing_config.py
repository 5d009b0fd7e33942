"""The documents of a configuration file that speak of queues and tenants: what is read, and what is refused how."""

from pathlib import Path
from typing import Any

import pytest

from mooring.assembly import assemble
from mooring.config.queueing import PodsReady, QueueingSettings, TransformedResource, UsageHistory
from mooring.config.settings import Settings, load_settings, parse_settings
from mooring.config.tenant_policy import QuotaWindow, TenantPolicy
from mooring.errors import ConfigError

Json = dict[str, Any]


def kueue(version: str = "v1beta2", **given: Any) -> Json:
    return {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration", **given}


def policy(**given: Any) -> Json:
    return {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "TenantPolicy", **given}


def window(**given: Any) -> Json:
    return {"queue": "a", "resource": "cpu", "flavor": "f", "from": "22:00", "to": "06:00", "nominalQuota": 4, **given}


def queueing(document: Json) -> QueueingSettings:
    return parse_settings([document], "kueue.yaml").queueing


def test_without_a_document_everything_is_as_kueue_has_it_by_default() -> None:
    assert queueing(kueue()) == QueueingSettings() == assemble().queueing
    assert QueueingSettings().pods_ready == PodsReady(timeout_seconds=1800, recovery_timeout_seconds=1800)


def test_all_that_decides_is_read() -> None:
    document = kueue(
        fairSharing={"preemptionStrategies": ["LessThanInitialShare"]},
        waitForPodsReady={
            "timeout": "10m",
            "recoveryTimeout": "0s",
            "blockAdmission": True,
            "requeuingStrategy": {
                "timestamp": "Creation",
                "backoffLimitCount": 5,
                "backoffBaseSeconds": 30,
                "backoffMaxSeconds": 600,
            },
        },
        admissionFairSharing={"usageHalfLifeTime": "1h30m", "resourceWeights": {"cpu": 2.0}},
        resources={
            "excludeResourcePrefixes": ["networking.example.com/"],
            "transformations": [
                {"input": "nvidia.com/mig-1g.5gb", "strategy": "Replace", "outputs": {"example.com/gpu-memory": "5Gi"}}
            ],
            "quotaCheckStrategy": "IgnoreUndeclared",
        },
        manageJobsWithoutQueueName=True,
    )

    assert queueing(document) == QueueingSettings(
        fair_sharing=True,
        preemption_strategies=("LessThanInitialShare",),
        pods_ready=PodsReady(600, None, True, False, 5, 30, 600),
        usage_history=UsageHistory(5400, 300, {"cpu": 2.0}),
        excluded_prefixes=("networking.example.com/",),
        transformations={
            "nvidia.com/mig-1g.5gb": TransformedResource({"example.com/gpu-memory": (5 << 30) * 10**9}, False)
        },
        ignores_undeclared=True,
        unused=("manageJobsWithoutQueueName",),
    )


def test_jobs_that_name_no_queue_are_not_managed_and_that_is_said() -> None:
    asked, silent = (Settings(queueing=queueing(kueue(manageJobsWithoutQueueName=each))) for each in (True, False))

    assert asked.remarks == ["config.kueue.x-k8s.io Configuration: not used here: manageJobsWithoutQueueName"]
    assert silent.remarks == []


def test_in_the_older_version_parts_are_switched_on_by_a_key() -> None:
    off = queueing(kueue("v1beta1", fairSharing={}, waitForPodsReady={"timeout": "1m"}))
    on = queueing(kueue("v1beta1", fairSharing={"enable": True}, waitForPodsReady={"enable": True}))

    assert (off.fair_sharing, off.pods_ready) == (False, None)
    assert (on.fair_sharing, on.pods_ready) == (True, PodsReady(300, 300))


def test_a_feature_gate_switches_waiting_for_pods_off() -> None:
    assert queueing(kueue(featureGates={"DisableWaitForPodsReady": True})).pods_ready is None


def test_backoffs_double_up_to_the_longest() -> None:
    settings = PodsReady(backoff_base_seconds=60, backoff_max_seconds=200)

    assert [settings.backoff_seconds(count) for count in (1, 2, 3, 1000)] == [60, 120, 200, 200]


def test_what_steers_kueues_own_process_is_left_alone() -> None:
    document = kueue(
        health={"healthProbeBindAddress": ":8081"},
        webhook={"port": 9443},
        integrations={"frameworks": ["batch/job"]},
        multiKueue={"gcInterval": "1m"},
        visibilityServer={"bindPort": 8082},
        managedJobsNamespaceSelector={"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    )

    assert queueing(document) == QueueingSettings()


def test_a_file_may_hold_a_document_of_each_kind(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n---\n"
        "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfairSharing: {enable: true}\n---\n"
        "apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\nholdFreedRoom: true\n"
    )

    settings, assembly = load_settings(file), assemble(file)

    assert settings.scheduler.parallelism == 3
    assert assembly.queueing.fair_sharing
    assert assembly.tenants == TenantPolicy(hold_freed_room=True, check_placement="OnRequest")


def test_a_quota_window_has_its_times_and_quotas() -> None:
    document = policy(quotaWindows=[window(days=["Fri", "Sat"], timeZone="Europe/Berlin", noticeSeconds=600)])

    assert parse_settings([document], "f").tenants.quota_windows == [
        QuotaWindow(
            queue="a",
            resource="cpu",
            flavor="f",
            from_="22:00",
            to="06:00",
            days=["Fri", "Sat"],
            time_zone="Europe/Berlin",
            nominal_quota=4,
            notice_seconds=600,
        )
    ]


STRATEGIES = (
    "[LessThanOrEqualToFinalShare] or [LessThanInitialShare] or [LessThanOrEqualToFinalShare, LessThanInitialShare]"
)
TRANSFORMATION = {"input": "a", "outputs": {}}

REFUSED = [
    pytest.param(
        kueue(fairSharin={}), 'fairSharin: expected a known key (did you mean fairSharing?), found "fairSharin"'
    ),
    pytest.param(
        kueue("v1"),
        "apiVersion: expected config.kueue.x-k8s.io/v1beta2 or config.kueue.x-k8s.io/v1beta1, "
        'found "config.kueue.x-k8s.io/v1"',
    ),
    pytest.param(
        kueue(fairSharing={"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}),
        f"fairSharing.preemptionStrategies: expected {STRATEGIES}, "
        "found [LessThanInitialShare, LessThanOrEqualToFinalShare]",
    ),
    pytest.param(
        kueue(waitForPodsReady={"timeout": "5 minutes"}),
        'waitForPodsReady.timeout: expected a duration such as 90s, 10m or 1h30m, found "5 minutes"',
    ),
    pytest.param(
        kueue(waitForPodsReady={"requeuingStrategy": {"timestamp": "Now"}}),
        'waitForPodsReady.requeuingStrategy.timestamp: expected one of Eviction, Creation, found "Now"',
    ),
    pytest.param(
        kueue(waitForPodsReady={"requeuingStrategy": {"backoffBaseSeconds": -1}}),
        "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: expected a number of at least 0, found -1",
    ),
    pytest.param(
        kueue(waitForPodsReady={"requeuingStrategy": {"backoffLimitCount": 1.5}}),
        "waitForPodsReady.requeuingStrategy.backoffLimitCount: expected int | null, found float",
    ),
    pytest.param(
        kueue(admissionFairSharing={"usageHalfLifeTime": "1h", "usageSamplingInterval": "0s"}),
        'admissionFairSharing.usageSamplingInterval: expected a duration of more than 0, found "0s"',
    ),
    pytest.param(
        kueue(admissionFairSharing={"resourceWeights": {"cpu": -1}}),
        "admissionFairSharing.resourceWeights.cpu: expected a number of at least 0, found -1",
    ),
    pytest.param(
        kueue(resources={"transformations": [{**TRANSFORMATION, "strategy": "Keep"}]}),
        'resources.transformations[0].strategy: expected one of Retain, Replace, found "Keep"',
    ),
    pytest.param(
        kueue(resources={"transformations": [TRANSFORMATION, TRANSFORMATION]}),
        'resources.transformations[1].input: expected each resource once, found "a" again',
    ),
    pytest.param(
        kueue(resources={"transformations": [{"input": "a", "outputs": {"b": "5 Gi"}}]}),
        'resources.transformations[0].outputs.b: expected a quantity such as 2, 500m or 5Gi, found "5 Gi"',
    ),
    pytest.param(
        kueue(resources={"quotaCheckStrategy": "Ignore"}),
        'resources.quotaCheckStrategy: expected one of BlockUndeclared, IgnoreUndeclared, found "Ignore"',
    ),
    pytest.param(policy(holdFreedRoom="yes"), "holdFreedRoom: expected bool, found str"),
    pytest.param(
        policy(checkPlacement="Sometimes"),
        'checkPlacement: expected one of Never, OnRequest, Always, found "Sometimes"',
    ),
    pytest.param(
        policy(minimumRuntimeBeforeReclaimSeconds=-5),
        "minimumRuntimeBeforeReclaimSeconds: expected a whole number of at least 0, found -5",
    ),
    pytest.param(
        {**policy(), "apiVersion": "config.mooring.dev/v1"},
        'apiVersion: expected config.mooring.dev/v1alpha1, found "config.mooring.dev/v1"',
    ),
    pytest.param(
        policy(quotaWindows=[window(**{"from": "24:00"})]),
        'quotaWindows[0].from: expected a time of day such as 22:00, found "24:00"',
    ),
    pytest.param(
        policy(quotaWindows=[window(to="22:00")]),
        "quotaWindows[0].to: expected another time than from (22:00), found 22:00",
    ),
    pytest.param(
        policy(quotaWindows=[window(days=["Mon", "Mon"])]),
        'quotaWindows[0].days[1]: expected each day once, found "Mon" again',
    ),
    pytest.param(
        policy(quotaWindows=[window(timeZone="Mars/Olympus")]),
        'quotaWindows[0].timeZone: expected a time zone such as Europe/Berlin, found "Mars/Olympus"',
    ),
    pytest.param(
        policy(quotaWindows=[window(nominalQuota=None)]),
        "quotaWindows[0]: expected at least one of nominalQuota, lendingLimit, borrowingLimit, found none",
    ),
    pytest.param(
        policy(quotaWindows=[window(nominalQuota="-1")]),
        'quotaWindows[0].nominalQuota: expected a quantity such as 8, 500m or 64Gi, not below 0, found "-1"',
    ),
    pytest.param(
        {"kind": "Deployment"},
        "kind: expected KubeSchedulerConfiguration, Configuration, TenantPolicy, volcano-scheduler.conf, "
        "queues.yaml, SchedulingShard, DeschedulerPolicy, RebalancePolicy, LoadSources, InstanceTypeCatalogue, "
        "CapacityPolicy or slo-controller-config, "
        'found "Deployment"',
    ),
]


@pytest.mark.parametrize(("document", "message"), REFUSED)
def test_what_is_wrong_is_said_in_one_line(document: Json, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_settings([document], "file.yaml")

    assert str(refused.value) == f"file.yaml: {message}"


def test_of_several_documents_the_wrong_one_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^f.yaml: document 2: checkPlacement: expected one of"):
        parse_settings([kueue(), policy(checkPlacement="x")], "f.yaml")
    with pytest.raises(ConfigError, match=r"^f.yaml: document 3: kind: expected each kind once, found .* document 1$"):
        parse_settings([kueue(), policy(), kueue()], "f.yaml")
    with pytest.raises(ConfigError, match=r"^f.yaml: expected a KubeSchedulerConfiguration, found nothing$"):
        parse_settings([None], "f.yaml")
