from pods import container, live, pod, story

from mooring.model.kubelet.distributions import Distribution
from mooring.model.kubelet.plan import Timings


def test_a_pod_pulls_starts_gets_ready_and_ends() -> None:
    timings = Timings(pull=Distribution(5.0), start=Distribution(1.0), ready=Distribution(2.0))
    life = live(pod(container("main", "sleep", "10")), timings)

    seen = story(life)

    assert seen == [
        (6.0, "Running", {"main": "running"}),
        (8.0, "Running", {"main": "running"}),
        (16.0, "Succeeded", {"main": "terminated Completed"}),
    ]


def test_an_image_that_the_node_has_is_not_pulled_again() -> None:
    timings = Timings(pull=Distribution(5.0))
    images: set[str] = set()

    starts = [story(live(pod(container("main", "sleep", "1")), timings, images=images))[0][0] for _ in range(2)]

    assert starts == [5.0, 0.0]


def test_an_image_that_does_not_exist_keeps_its_pod_pending() -> None:
    life = live(pod({"name": "main", "image": "webserver:404"}))

    assert story(life, until=12) == [
        (0.0, "Pending", {"main": "waiting ErrImagePull"}),
        (1.0, "Pending", {"main": "waiting ImagePullBackOff"}),
        (11.0, "Pending", {"main": "waiting ErrImagePull"}),
        (12.0, "Pending", {"main": "waiting ImagePullBackOff"}),
    ]


def test_init_containers_run_in_turn_and_sidecars_stay_until_the_end() -> None:
    life = live(
        pod(
            container("main", "sleep", "10"),
            initContainers=[container("first", "sleep", "2"), container("proxy", restartPolicy="Always")],
        )
    )

    waiting = "waiting PodInitializing"
    assert story(life) == [
        (0.0, "Pending", {"first": "running", "proxy": waiting, "main": waiting}),
        (2.0, "Running", {"first": "terminated Completed", "proxy": "running", "main": "running"}),
        (
            12.0,
            "Succeeded",
            {"first": "terminated Completed", "proxy": "terminated Error", "main": "terminated Completed"},
        ),
    ]


def test_a_failed_init_container_fails_a_pod_that_is_not_restarted() -> None:
    life = live(pod(container("main", "sleep", "10"), initContainers=[container("first", "false")]))

    life.advance(100)

    assert (life.phase, life.is_over) == ("Failed", True)


def test_a_container_that_keeps_failing_waits_longer_each_time() -> None:
    life = live(pod(container("main", "false"), restartPolicy="Always"))

    starts = [at for at, _, states in story(life, until=1000) if states == {"main": "running"}]

    # Half a second of running, and from its end first nothing, then 10 s, 20 s, ... up to five minutes.
    assert starts == [0.0, 0.5, 11.0, 31.5, 72.0, 152.5, 313.0, 613.5, 914.0]
    assert life.phase == "Running"
    assert life.containers[0].reason == "CrashLoopBackOff"
    assert life.containers[0].message == "back-off 5m0s restarting failed container=main"


def test_a_restart_rule_starts_a_container_again_on_its_exit_codes_only() -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]

    lives = [
        live(pod(container("main", "sh", "-c", f"exit {code}", restartPolicy="Never", restartPolicyRules=rules)))
        for code in (42, 1)
    ]
    for life in lives:
        life.advance(5)

    assert [(life.phase, life.containers[0].restart_count) for life in lives] == [("Running", 1), ("Failed", 0)]


def test_restart_all_containers_begins_again_with_the_init_containers() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    watcher = container("watcher", "sh", "-c", "sleep 10; exit 88", restartPolicy="Never", restartPolicyRules=rules)
    life = live(pod(container("main", "sleep", "100"), watcher, initContainers=[container("first", "sleep", "2")]))

    life.advance(15)

    assert life.phase == "Running"
    assert {one.plan.name: one.restart_count for one in (*life.init, *life.containers)} == {
        "first": 1,
        "main": 1,
        "watcher": 1,
    }
    assert life.containers[0].last is not None
    assert life.containers[0].last == (137, "RestartingAllContainers", 2.0, 12.0)
    assert life.containers[0].started_at == 14.0


def test_a_pod_that_exceeds_its_deadline_fails() -> None:
    life = live(pod(container("main", "sleep", "100"), activeDeadlineSeconds=7))

    assert story(life)[-1] == (7.0, "Failed", {"main": "terminated Error"})
    assert life.reason == "DeadlineExceeded"


def test_a_deleted_pod_stops_within_its_grace() -> None:
    quick, slow, stubborn = (
        live(pod(container("main"), annotations={"mooring.dev/stop-delay": delay})) for delay in ("0", "4s", "never")
    )
    for life in (quick, slow, stubborn):
        life.advance(10)
        life.stop(10, grace_seconds=30)

    ends = [(story(life)[-1][0], life.phase, life.containers[0].exit_code) for life in (quick, slow, stubborn)]

    assert ends == [(10.0, "Failed", 143), (14.0, "Failed", 143), (40.0, "Failed", 137)]


def test_a_second_deletion_shortens_the_grace() -> None:
    life = live(pod(container("main"), annotations={"mooring.dev/stop-delay": "never"}))
    life.advance(10)

    life.stop(10, grace_seconds=30)
    life.stop(12, grace_seconds=0)

    assert story(life)[-1][0] == 12.0


def test_a_pre_stop_hook_holds_a_pod() -> None:
    life = live(pod(container("main", lifecycle={"preStop": {"sleep": {"seconds": 5}}})))
    life.advance(1)

    life.stop(1, grace_seconds=30)

    assert story(life)[-1][0] == 6.0


def test_annotations_say_how_long_a_pod_runs_and_how_it_ends() -> None:
    annotations = {"mooring.dev/duration": "1m", "mooring.dev/exit-code": "3", "mooring.dev/duration.side": "10s"}
    life = live(pod(container("main", "sleep", "9999"), container("side"), annotations=annotations))

    assert [(at, phase) for at, phase, _ in story(life)] == [(0.0, "Running"), (10.0, "Running"), (60.0, "Failed")]
    assert life.containers[0].exit_code == 3


def test_a_duration_of_chance_is_the_same_for_the_same_seed() -> None:
    document = pod(container("main"), annotations={"mooring.dev/duration": "exponential(10m)"})

    ends = [story(live(document, seed=seed))[-1][0] for seed in (1, 1, 2)]

    assert ends[0] == ends[1] != ends[2]


def test_failures_of_chance_come_as_often_as_told() -> None:
    document = pod(container("main", "true"), annotations={"mooring.dev/failure-probability": "0.25"})
    lives = [live(document, seed=seed) for seed in range(400)]
    for life in lives:
        life.advance(1)

    assert 70 < sum(life.phase == "Failed" for life in lives) < 130


def test_pods_with_odd_indexes_fail_where_their_script_says_so() -> None:
    script = "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"
    lives = [live(pod(container("main", "sh", "-c", script)), index=index) for index in range(4)]
    for life in lives:
        life.advance(1)

    assert [life.phase for life in lives] == ["Succeeded", "Failed", "Succeeded", "Failed"]


def test_a_pod_of_a_job_ends_soon_if_its_command_does_not_tell() -> None:
    document = pod(container("main", "python", "train.py"))
    document["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]

    assert story(live(document))[-1][:2] == (0.5, "Succeeded")
    assert story(live(pod(container("main", "python", "train.py"))))[-1][:2] == (0.0, "Running")


def test_probes_delay_readiness() -> None:
    probed = container("main", readinessProbe={"initialDelaySeconds": 20}, startupProbe={"initialDelaySeconds": 3})
    life = live(pod(probed))

    ready = []
    for at in (0, 3, 22, 23):
        life.advance(at)
        ready.append((life.containers[0].is_started, life.is_ready))

    assert ready == [(False, False), (True, False), (True, False), (True, True)]


def test_a_probe_that_fails_never_makes_ready() -> None:
    life = live(pod(container("main", readinessProbe={"exec": {"command": ["/bin/false"]}})))

    life.advance(10**9)

    assert (life.phase, life.is_ready) == ("Running", False)
