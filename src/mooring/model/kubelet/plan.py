"""What will happen to the pods of one template on a node, as far as their description tells.

A plan is read once from a pod's document and serves every pod with the same spec and annotations; what differs from pod
to pod (the seed, the index) belongs to its life.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mooring.model.kubelet.commands import ENDLESS, Ending, ending_of, image_name
from mooring.model.kubelet.distributions import AT_ONCE, EXPECTED_DISTRIBUTION, NEVER, Distribution, parse_distribution
from mooring.model.values.durations import DURATION

EXIT_CODE = "mooring.dev/exit-code"
FAILURE_PROBABILITY = "mooring.dev/failure-probability"
PULL_DELAY = "mooring.dev/image-pull-delay"
START_DELAY = "mooring.dev/start-delay"
READY_DELAY = "mooring.dev/ready-delay"
STOP_DELAY = "mooring.dev/stop-delay"
RESIZE_DELAY = "mooring.dev/resize-delay"
FAIL_ONCE = "mooring.dev/fail-once"
"""`INDEX@TIME`: the pod of that completion index fails so long after its containers have started for the first time."""
GANG_RESTART = "mooring.dev/gang-restart"
"""What becomes of all pods of a gang when one of them fails."""
IN_PLACE, RECREATE = "InPlace", "Recreate"

_TIMES = (DURATION, PULL_DELAY, START_DELAY, READY_DELAY, STOP_DELAY, RESIZE_DELAY)

MISSING_IMAGES = ("404", "non-existent", "nonexistent", "does-not-exist", "invalid")
"""Tags of images that no registry has: pulling one fails."""
JOB_KINDS = (
    "Job",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "XGBoostJob",
    "JAXJob",
    "PaddleJob",
    "TrainJob",
    "SparkApplication",
)

Document = Mapping[str, Any]


HALF_A_SECOND = Distribution(0.5)


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things take on a node where a pod does not say so itself."""

    pull: Distribution = AT_ONCE
    """To pull an image that the node does not have."""
    start: Distribution = AT_ONCE
    """From there to the running container."""
    ready: Distribution = AT_ONCE
    """From running to ready, on top of the delays that its probes have."""
    stop: Distribution = AT_ONCE
    """From the signal to the end of the container; at most the grace period."""
    job: Distribution = HALF_A_SECOND
    """How long a container of a Job runs whose command does not tell."""


DEFAULT_TIMINGS = Timings()


@dataclass(frozen=True, slots=True)
class RestartRule:
    """What container-level rules do on an exit code."""

    action: str
    is_in: bool
    codes: frozenset[int]

    def matches(self, exit_code: int) -> bool:
        return (exit_code in self.codes) == self.is_in


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What one container does each time that it is started."""

    name: str
    image: str
    pull: Distribution
    start: Distribution
    ready: Distribution
    stop: Distribution
    duration: Distribution
    ending: Ending
    restart_policy: str
    rules: tuple[RestartRule, ...] = ()
    is_init: bool = False
    is_sidecar: bool = False
    is_missing: bool = False
    started: float = 0.0
    stop_code: int = 143
    fail_once: tuple[int, float] | None = None
    """The completion index whose first run fails, and after how many seconds."""

    def rule_for(self, exit_code: int) -> str:
        """The action of the first rule that matches, or nothing."""
        return next((rule.action for rule in self.rules if rule.matches(exit_code)), "")

    def restarts_after(self, exit_code: int) -> bool:
        if self.rule_for(exit_code):
            return True
        return self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and exit_code != 0)


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What the pods of one template do."""

    init: tuple[ContainerPlan, ...]
    containers: tuple[ContainerPlan, ...]
    deadline_seconds: float = math.inf
    can_restart_all: bool = False


def resize_delay(pod: Document) -> Distribution:
    """How long a kubelet takes to carry out a resize of this pod once there is room for it."""
    text = (pod.get("metadata", {}).get("annotations") or {}).get(RESIZE_DELAY)
    return (parse_distribution(text) if text is not None else None) or AT_ONCE


def gang_restart(pod: Document) -> str:
    """The restart policy of a pod's gang: InPlace, Recreate, or nothing."""
    said = (pod.get("metadata", {}).get("annotations") or {}).get(GANG_RESTART, "")
    return said if said in (IN_PLACE, RECREATE) else ""


def _fail_once(annotations: Document) -> tuple[int, float] | None:
    index, _, time = str(annotations.get(FAIL_ONCE, "")).partition("@")
    found = parse_distribution(time)
    return (int(index), found.first) if index.isdecimal() and found is not None and not found.kind else None


def plan_of(pod: Document, timings: Timings = DEFAULT_TIMINGS) -> PodPlan:
    """Read the plan of a pod from its document."""
    spec, annotations = pod["spec"], pod.get("metadata", {}).get("annotations") or {}
    reading = _Reading(annotations, spec.get("restartPolicy") or "Always", _is_of_a_job(pod), timings)
    init = tuple(reading.container(container, is_init=True) for container in spec.get("initContainers") or ())
    once = _fail_once(annotations)
    containers = tuple(replace(reading.container(container), fail_once=once) for container in spec["containers"])
    deadline = spec.get("activeDeadlineSeconds")
    return PodPlan(
        init=init,
        containers=containers,
        deadline_seconds=math.inf if deadline is None else float(deadline),
        can_restart_all=any(
            rule.action == "RestartAllContainers" for one in (*init, *containers) for rule in one.rules
        ),
    )


def unreadable_times(pod: Document) -> list[str]:
    """What of a pod's annotations was meant as a time and cannot be read, in one line each."""
    complaints = []
    for key, text in (pod.get("metadata", {}).get("annotations") or {}).items():
        if key.startswith(_TIMES) and parse_distribution(text) is None:
            complaints.append(f"annotation {key}: expected {EXPECTED_DISTRIBUTION}, found {text!r}")
    return complaints


def _is_of_a_job(pod: Document) -> bool:
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") in JOB_KINDS for owner in owners)


class _Reading:
    """Reads the containers of one pod."""

    def __init__(self, annotations: Mapping[str, str], pod_policy: str, is_of_a_job: bool, timings: Timings) -> None:
        self._annotations, self._pod_policy, self._timings = annotations, pod_policy, timings
        self._default = timings.job if is_of_a_job else NEVER

    def container(self, container: Document, is_init: bool = False) -> ContainerPlan:
        name, image = container["name"], container.get("image") or ""
        own = container.get("restartPolicy")
        is_sidecar = is_init and own == "Always"
        duration, ending = self._ending(container, is_init and not is_sidecar)
        started, ready = _probe_delays(container)
        asked = self._time(READY_DELAY, name, self._timings.ready)
        return ContainerPlan(
            name=name,
            image=image,
            pull=self._time(PULL_DELAY, name, self._timings.pull),
            start=self._time(START_DELAY, name, self._timings.start),
            ready=replace(asked, first=asked.first + started + ready) if started + ready else asked,
            stop=self._stop(container),
            duration=duration,
            ending=ending,
            restart_policy=own or self._init_policy(is_init),
            rules=tuple(_restart_rules(container)) if own else (),
            is_init=is_init,
            is_sidecar=is_sidecar,
            is_missing=image.rsplit(":", 1)[-1] in MISSING_IMAGES,
            started=started,
            stop_code=0 if image_name(image) == "pause" else 143,
        )

    def _init_policy(self, is_init: bool) -> str:
        """An init container that succeeded is done, whatever the pod's policy."""
        return "OnFailure" if is_init and self._pod_policy == "Always" else self._pod_policy

    def _ending(self, container: Document, is_init: bool) -> tuple[Distribution, Ending]:
        name = container["name"]
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        ending = ending_of(container.get("image") or "", command)
        # What holds for the pod is about what it is for, not about what prepares it.
        told = self._said(DURATION, name, not is_init)
        duration = parse_distribution(told) if told is not None else None
        if duration is None:
            short = AT_ONCE if is_init else self._default
            duration = short if ending.seconds is None else Distribution(ending.seconds)
        elif ending is ENDLESS:
            ending = Ending()
        code, chance = self._said(EXIT_CODE, name, not is_init), self._said(FAILURE_PROBABILITY, name, not is_init)
        if code is not None and code.isdecimal():
            ending = replace(ending, exit_code=int(code) % 256, odd_indexes_fail=False, failure_probability=0.0)
        if chance is not None:
            ending = replace(ending, failure_probability=_probability(chance))
        return duration, ending

    def _stop(self, container: Document) -> Distribution:
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        stop = self._time(STOP_DELAY, container["name"], self._timings.stop)
        before = float((hook.get("sleep") or {}).get("seconds") or 0)
        if "exec" in hook:
            before = ending_of("", hook["exec"].get("command") or ()).seconds or 0.0
        return replace(stop, first=stop.first + before) if before else stop

    def _time(self, key: str, container: str, default: Distribution) -> Distribution:
        text = self._said(key, container)
        found = parse_distribution(text) if text is not None else None
        return default if found is None else found

    def _said(self, key: str, container: str, also_for_the_pod: bool = True) -> str | None:
        """What an annotation says of a container (`key.container`), else of its pod."""
        own = self._annotations.get(f"{key}.{container}")
        return self._annotations.get(key) if own is None and also_for_the_pod else own


def _probability(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0


def _probe_delays(container: Document) -> tuple[float, float]:
    """Seconds until a container counts as started, and from there until its readiness probe has succeeded."""
    startup, readiness = container.get("startupProbe"), container.get("readinessProbe")
    return _probe_seconds(startup), _probe_seconds(readiness)


def _probe_seconds(probe: Document | None) -> float:
    if not probe:
        return 0.0
    handler = probe.get("exec")
    if handler and ending_of("", handler.get("command") or ()).exit_code:
        return math.inf
    repeats = (probe.get("successThreshold") or 1) - 1
    return float(probe.get("initialDelaySeconds") or 0) + repeats * float(probe.get("periodSeconds") or 10)


def _restart_rules(container: Document) -> Iterator[RestartRule]:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        yield RestartRule(rule["action"], codes.get("operator") == "In", frozenset(codes.get("values") or ()))
