"""The simulated world: what happens to machines and pods, and what the scheduler is told of it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mooring.drivers.sim.amounts import asked_by, held_by
from mooring.drivers.sim.machines import Machine
from mooring.drivers.sim.pods import NO_CHECKPOINTS, Checkpoints, SimulatedJob, SimulatedPod
from mooring.drivers.sim.recorder import Recorder
from mooring.drivers.sim.settings import SimulationSettings
from mooring.drivers.sim.submissions import Submitted
from mooring.drivers.world.agenda import Agenda
from mooring.drivers.world.pods import NOT_READY, READY, is_for_its_node, on_node, over
from mooring.engine.cycle import Scheduler
from mooring.model.api.devices import ResourceSlice
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.decisions import Bind, Written
from mooring.model.events import Event, NodeLost, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.jobs.expansion import controller_of
from mooring.model.kubelet.backoff import BACKOFF_LIMIT, backoff_seconds
from mooring.model.kubelet.life import PENDING, SUCCEEDED
from mooring.model.kubelet.plan import GANG_RESTART, IN_PLACE, RECREATE
from mooring.model.values.tolerations import tolerated_seconds
from mooring.report.simulation.results import DOWN, EVICTED, FAILED, FINISHED, NODE_LOST, RUNNING, WAITING


@dataclass(frozen=True, slots=True)
class Work:
    """A job that arrives, and how it saves its work."""

    at: float
    """Seconds since 1970."""
    submitted: Submitted
    before: tuple[Event, ...] = ()
    """What has to be there first."""
    duration: float = math.nan
    """Seconds that each pod works; nan: as their plans say."""
    checkpoints: Checkpoints = NO_CHECKPOINTS


class Coming(NamedTuple):
    """Work that is to arrive: its objects are read when it does, against the queues and priorities of that moment."""

    at: float
    """Seconds since 1970."""
    come: Callable[[], list[Work]]


class GangRestart(NamedTuple):
    """A job all pods of which began anew because one had failed; in seconds since 1970."""

    job: str
    failed_at: float
    whole_at: float
    """When all of them ran again."""


class World:
    """Machines, pods and jobs. `now` is set by whoever lets time pass."""

    def __init__(self, scheduler: Scheduler, settings: SimulationSettings, recorder: Recorder) -> None:
        self._scheduler, self._settings, self._recorder = scheduler, settings, recorder
        self.now = settings.start
        self.agenda = Agenda()
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, SimulatedPod] = {}
        self.gang_restarts: list[GangRestart] = []
        self.pods_changed: Callable[[str], None] = lambda node: None
        """Told the node that a pod came to or went from."""
        self.has_changed = False
        """Whether the scheduler was told something that it may act on, since this was last set back."""

    @property
    def elapsed(self) -> float:
        return self.now - self._settings.start

    def tell(self, *events: Event) -> None:
        self._scheduler.handle(*events)
        self.has_changed = True

    # Machines.

    def see_node(self, node: Node) -> None:
        """A node is there, new or changed; taints may drive pods away from it."""
        name = node.metadata.name
        machine = self.machines.get(name)
        if machine is None:
            held = held_by(node)
            row = self._recorder.add_node(name, held, self._settings.price(node))
            machine = self.machines[name] = Machine(node, row, held)
            machine.is_there = False
            self.bring_back(machine)
            return
        machine.node = node
        held = held_by(node)
        if held != machine.held and machine.is_up:
            self._recorder.node_counts(self.elapsed, machine.row, machine.held, -1)
            self._recorder.node_counts(self.elapsed, machine.row, held, 1)
        machine.held = held
        if machine.is_there:
            self._show(machine)
            self._drive_away(machine)

    def launch(self, node: Node, slices: Iterable[ResourceSlice]) -> str:
        """A machine comes that was asked for; why not, if it cannot."""
        known = self.machines.get(node.metadata.name)
        if known is not None and known.is_there:
            return f"there is a node {node.metadata.name} already"
        self.see_node(node)
        if known is not None:
            self.bring_back(known)
        self.tell(*map(ObjectSeen, slices))
        return ""

    def terminate(self, name: str) -> str:
        """A machine is given back; why not, if it cannot."""
        machine = self.machines.get(name)
        if machine is None or not machine.is_there:
            return f"there is no node {name}"
        self.take_away(machine)
        return ""

    def fail(self, machine: Machine) -> None:
        """A machine stops working. The cluster finds out later."""
        if not machine.is_up:
            return
        machine.is_dead = True
        self._count(machine, -1)
        for pod in machine.pods.values():
            self._stop_work(pod, can_save=False)
            self._hold(pod, -1)
            pod.turn += 1
        if machine.pods:
            self._recorder.nodes_used(self.elapsed, -1)
        self.agenda.note(self.now + self._settings.detection, self._miss, machine)

    def _miss(self, machine: Machine) -> None:
        """The cluster finds a node unreachable: its pods are given up when their tolerations end."""
        if machine.is_dead and machine.is_there:
            machine.is_unreachable = True
            self._show(machine)
            self._drive_away(machine)

    def repair(self, machine: Machine) -> None:
        """A machine works again, with nothing running on it."""
        if not machine.is_dead:
            return
        for pod in list(machine.pods.values()):
            self._lose(pod, NODE_LOST)
        machine.is_dead = machine.is_unreachable = False
        if machine.is_there:
            self._show(machine)
            self._count(machine, 1)
            self._start_daemons(machine)

    def cordon(self, machine: Machine, *, is_cordoned: bool) -> None:
        if machine.is_cordoned != is_cordoned:
            machine.is_cordoned = is_cordoned
            if machine.is_there:
                self._show(machine)
                self._recorder.node_changed(self.elapsed, machine.row, machine.state)

    def take_away(self, machine: Machine) -> None:
        """A machine is reclaimed by whoever lent it."""
        if not machine.is_there:
            return
        for pod in list(machine.pods.values()):
            self._stop_work(pod, can_save=True)
            self._lose(pod, NODE_LOST)
        if machine.is_up:
            self._count(machine, -1)
        machine.is_there = machine.is_dead = machine.is_unreachable = machine.is_cordoned = False
        self.tell(NodeLost(machine.name))

    def bring_back(self, machine: Machine) -> None:
        """A machine that is not there comes, or comes back."""
        if not machine.is_there:
            machine.is_there = True
            machine.is_cordoned = False
            self._show(machine)
            self._count(machine, 1)
            self._start_daemons(machine)

    def _show(self, machine: Machine) -> None:
        self.tell(NodeSeen(machine.seen()))

    def _count(self, machine: Machine, by: int) -> None:
        self._recorder.node_counts(self.elapsed, machine.row, machine.held, by)
        self._recorder.node_changed(self.elapsed, machine.row, machine.state if by > 0 else DOWN)

    def _start_daemons(self, machine: Machine) -> None:
        daemons, machine.daemons = machine.daemons, []
        for pod in daemons:
            self._make_anew(pod)

    def _drive_away(self, machine: Machine) -> None:
        """Pods that do not tolerate a node's taints leave: at once, or when they do so no longer."""
        taints = [taint for taint in machine.seen().spec.taints or () if taint.effect == "NoExecute"]
        for pod in machine.pods.values() if taints else ():
            seconds, _ = tolerated_seconds(pod.pod.spec.tolerations or (), taints)
            self.agenda.note(self.now + seconds, self._give_up, (pod, pod.turn))

    def _give_up(self, which: tuple[SimulatedPod, int]) -> None:
        pod, turn = which
        if pod.turn == turn and pod.machine is not None:
            self._stop_work(pod, can_save=not pod.machine.is_dead)
            self._lose(pod, NODE_LOST if pod.machine.is_dead else EVICTED)

    # Jobs.

    def submit(self, work: Work) -> None:
        """A job arrives; pods of it that are on a node already run there."""
        submitted = work.submitted
        asked = [member.asked for member in submitted.members]
        row = self._recorder.add_job(
            submitted.name, submitted.queue, submitted.priority, asked, work.at - self._settings.start, work.duration
        )
        job = SimulatedJob(submitted, row, work.checkpoints)
        for index, (pod, member) in enumerate(zip(submitted.pods, submitted.members, strict=True)):
            known = SimulatedPod(pod, member, job, index, work.duration)
            job.pods[known.key] = self.pods[known.key] = known
            self._recorder.pods_waiting += 1
        self.tell(*work.before, *submitted.arrive)
        for known in list(job.pods.values()):
            if known.pod.spec.node_name in self.machines:
                self._take_up(known)

    def _take_up(self, pod: SimulatedPod) -> None:
        """A pod has been on its node since before the simulation; its work goes on from there."""
        self._come_to(pod, self.machines[pod.pod.spec.node_name])
        started = timestamp_seconds(pod.pod.status.start_time)
        if pod.life is not None and started is not None and not math.isnan(pod.since):
            done = min(max(0.0, self.now - started), pod.total)
            pod.saved = done
            self._begin(pod)  # with what is left
            if pod.life is not None:
                pod.saved, pod.since = 0.0, self.now - done  # as far as anybody knows, none of it is saved

    def _finish(self, job: SimulatedJob, state: str) -> None:
        """A job is over: everything that it brought is gone."""
        for pod in list(job.pods.values()):
            if pod.machine is not None:
                self._stop_work(pod, can_save=False)
                self._depart(pod, state)
            else:
                self._recorder.pods_waiting -= 1
            pod.leave()
            del self.pods[pod.key]
        job.pods.clear()
        columns = self._recorder.jobs.of
        columns["ended"][job.row], columns["state"][job.row] = self.elapsed, state
        self._recorder.job_left(job.submitted.queue, ran=job.is_running)
        self.tell(*job.submitted.leave)

    def _note_job(self, job: SimulatedJob) -> None:
        """All pods of a job are on nodes, or not any more."""
        is_running = bool(job.pods) and job.bound == len(job.pods)
        if is_running != job.is_running:
            job.is_running = is_running
            self._recorder.job_runs(job.submitted.queue, 1 if is_running else -1)
            self._recorder.jobs.of["state"][job.row] = RUNNING if is_running else WAITING

    # Pods.

    def bind(self, decision: Bind) -> str:
        """A pod comes to a node; why not, if it cannot."""
        pod, machine = self.pods.get(decision.pod), self.machines.get(decision.node)
        if pod is None or machine is None or not machine.is_there:
            return "the pod or its node is gone"
        self._come_to(pod, machine, decision.annotations, decision.labels)
        return ""

    def _come_to(self, pod: SimulatedPod, machine: Machine, annotations: Written = (), labels: Written = ()) -> None:
        pod.machine, pod.bound_at = machine, self.now
        pod.stay = self._recorder.bound(self.elapsed, pod.job.row, pod.index, machine.row, pod.asked)
        self._recorder.pods_waiting -= 1
        if not machine.is_dead:
            self._hold(pod, 1)
            if not machine.pods:
                self._recorder.nodes_used(self.elapsed, 1)
        machine.pods[pod.key] = pod
        self.pods_changed(machine.name)
        pod.job.bound += 1
        self._note_job(pod.job)
        if not machine.is_dead:
            self._begin(pod)
        if pod.machine is machine:
            self._confirm(pod, annotations, labels)

    def _confirm(self, pod: SimulatedPod, annotations: Written = (), labels: Written = ()) -> None:
        """The scheduler sees a pod on its node, as far as it has come there."""
        record = self._scheduler.cluster.pods.records.get(pod.key)
        known: Pod = pod.pod if record is None else record.pod
        assert pod.machine is not None
        life = pod.life
        status = PodStatus(
            phase=PENDING if life is None else life.phase,
            start_time=timestamp_text(pod.bound_at),
            conditions=READY if life is not None and life.is_ready else NOT_READY,
        )
        self._scheduler.handle(PodSeen(on_node(known, pod.machine.name, status, annotations, labels)))

    def _begin(self, pod: SimulatedPod) -> None:
        """Start a pod's life on its node with the work that is left."""
        assert pod.machine is not None
        pod.begin(self.now, self._settings.seed, pod.machine)
        pod.turn += 1
        self._live(pod)

    def _live(self, pod: SimulatedPod) -> None:
        """Let everything happen in a pod's life that is due, and note when it goes on."""
        life = pod.life
        assert life is not None
        life.advance(self.now)
        if life.has_been_initialized and math.isnan(pod.since) and not pod.is_leaving:
            self._runs(pod)
        if life.is_over:
            self._end(pod)
        else:
            self.agenda.note(life.next_at, self._go_on, (pod, pod.turn))

    def _go_on(self, which: tuple[SimulatedPod, int]) -> None:
        pod, turn = which
        if pod.turn == turn and pod.life is not None:
            life, was = pod.life, (pod.life.phase, pod.life.is_ready)
            self._live(pod)
            if pod.life is life and (life.phase, life.is_ready) != was:
                self._confirm(pod)
                self.has_changed = True

    def _runs(self, pod: SimulatedPod) -> None:
        """The containers of a pod run."""
        pod.note_running()
        at = pod.since - self._settings.start
        self._recorder.started(at, pod.stay, pod.asked)
        if not math.isnan(pod.job.broken_at):
            self._note_whole(pod.job)
        if pod.has_run:
            return
        pod.has_run = True
        job, columns = pod.job, self._recorder.jobs.of
        ideal = pod.since - pod.bound_at + pod.total
        if not columns["ideal"][job.row] >= ideal:
            columns["ideal"][job.row] = ideal
        job.yet_to_run -= 1
        if not job.yet_to_run:
            columns["started"][job.row] = at

    def _stop_work(self, pod: SimulatedPod, *, can_save: bool) -> None:
        """A pod's containers stop before their work is done."""
        if not math.isnan(pod.since):
            self._recorder.stopped(self.elapsed, pod.stay, pod.asked)
            self._recorder.lost(pod.job.row, pod.stop_work(self.now, can_save=can_save), pod.asked.gpu)

    def _end(self, pod: SimulatedPod) -> None:
        """A pod's life is over."""
        assert pod.life is not None
        job, has_succeeded = pod.job, pod.life.phase == SUCCEEDED
        if pod.is_leaving:
            self._lose(pod, EVICTED)
            return
        if not has_succeeded and self._restart_gang(pod):
            return
        if not math.isnan(pod.since):
            if has_succeeded:
                self._recorder.stopped(self.elapsed, pod.stay, pod.asked)
                pod.since = math.nan
            else:
                self._stop_work(pod, can_save=False)
        self._depart(pod, FINISHED if has_succeeded else FAILED)
        pod.leave()
        if not has_succeeded:
            self._fail(pod)
        elif job.more:
            job.more -= 1
            pod.begin_anew()
            self.tell(PodLost(pod.key))
            self._make_anew(pod)
        else:
            del job.pods[pod.key], self.pods[pod.key]
            if not job.pods:
                self._finish(job, FINISHED)
                return
            record = self._scheduler.cluster.pods.records.get(pod.key)
            if record is not None:
                self.tell(PodSeen(over(record.pod, record.node_name, SUCCEEDED)))
            self._note_job(job)

    def _restart_gang(self, failed: SimulatedPod) -> bool:
        """A rank failed: all pods of its job begin anew, where they are or from the queue on, if they ask for that."""
        policy, job = (failed.pod.metadata.annotations or {}).get(GANG_RESTART, ""), failed.job
        machine = failed.machine
        if policy not in (IN_PLACE, RECREATE) or job.failures >= BACKOFF_LIMIT or machine is None or machine.is_dead:
            return False
        job.failures += 1
        if math.isnan(job.broken_at):
            job.broken_at = self.now
        for pod in list(job.pods.values()):
            if pod.machine is None or pod.machine.is_dead or pod.is_leaving:
                continue
            if policy == RECREATE and pod is not failed:
                self.evict(pod.key)
                continue
            self._stop_work(pod, can_save=False)
            if policy == RECREATE:
                self._lose(pod, FAILED)
            else:
                pod.attempts += 1
                self._begin(pod)
                self._confirm(pod)
        self.has_changed = True
        return True

    def _note_whole(self, job: SimulatedJob) -> None:
        """All pods of a job run again after one of them failed."""
        if not any(math.isnan(pod.since) for pod in job.pods.values()):
            self.gang_restarts.append(GangRestart(job.submitted.name, job.broken_at, self.now))
            job.broken_at = math.nan

    def _fail(self, pod: SimulatedPod) -> None:
        """A pod failed: its controller makes it anew after a while, unless it has done so too often."""
        job = pod.job
        job.failures += 1
        self._recorder.pods_waiting += 1
        if job.failures > BACKOFF_LIMIT or controller_of(pod.pod.metadata) is None:
            self._finish(job, FAILED)
            return
        self.tell(PodLost(pod.key))
        self._note_job(job)
        self.agenda.note(self.now + backoff_seconds(job.failures), self._return, (pod, pod.turn))

    def _return(self, which: tuple[SimulatedPod, int]) -> None:
        pod, turn = which
        if pod.turn == turn and pod.key in pod.job.pods:
            self._recorder.pods_waiting -= 1
            self._make_anew(pod)

    def evict(self, key: str) -> str:
        """A pod has to leave its node, with the grace that it has; why not, if it cannot."""
        pod = self.pods.get(key)
        if pod is None or pod.machine is None:
            return "the pod is gone"
        self._stop_work(pod, can_save=not pod.machine.is_dead)
        if pod.life is None or pod.machine.is_dead:
            self._lose(pod, EVICTED)
            return ""
        pod.is_leaving = True
        pod.turn += 1
        grace = pod.pod.spec.termination_grace_period_seconds
        pod.life.stop(self.now, 30.0 if grace is None else float(grace))
        self._live(pod)
        return ""

    def resize(self, key: str) -> str:
        """A kubelet gives a pod the amounts that it is to have; why not, if it cannot. From now on it holds these."""
        pod = self.pods.get(key)
        if pod is None or pod.machine is None or pod.machine.is_dead:
            return "the pod is gone"
        record = self._scheduler.cluster.pods.records.get(pod.key)
        if record is not None:
            self._hold(pod, -1)
            before, pod.asked = pod.asked, asked_by(record.pod)
            self._hold(pod, 1)
            if not math.isnan(pod.since):
                self._recorder.resized(self.elapsed, pod.stay, before, pod.asked)
        self._confirm(pod)
        return ""

    def _lose(self, pod: SimulatedPod, outcome: str) -> None:
        """A pod is gone from its node, and its controller makes it anew."""
        machine = pod.machine
        self._recorder.evicted(pod.job.row)
        self._depart(pod, outcome)
        pod.leave()
        self._note_job(pod.job)
        self.tell(PodLost(pod.key))
        if is_for_its_node(pod.pod) and machine is not None and outcome == NODE_LOST:
            machine.daemons.append(pod)
        else:
            self._make_anew(pod)

    def _depart(self, pod: SimulatedPod, outcome: str) -> None:
        """A pod is on its node no more."""
        machine = pod.machine
        assert machine is not None
        self._recorder.left(self.elapsed, pod.stay, outcome)
        del machine.pods[pod.key]
        self.pods_changed(machine.name)
        if not machine.is_dead:
            self._hold(pod, -1)
            if not machine.pods:
                self._recorder.nodes_used(self.elapsed, -1)
        pod.job.bound -= 1
        pod.machine = None

    def _hold(self, pod: SimulatedPod, by: int) -> None:
        """A pod holds what it asks for (1), or no more (-1): it leaves its node, or that has failed."""
        self._recorder.holds(self.elapsed, pod.stay, pod.asked, by)

    def _make_anew(self, pod: SimulatedPod) -> None:
        self._recorder.pods_waiting += 1
        self.tell(PodSeen(pod.made_anew(self._scheduler.cluster.related)))
