"""Who looks at a cluster after, and during, a bad day, and says what is not as it should be."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from control_plane import until
from faulty_proxy import FaultyProxy
from kube import Kube, Object

SETTLED_SECONDS = 120.0
LOOK_SECONDS = 0.5
GROUP = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"


def millis(found: Object) -> int:
    """The CPU that a pod asks for, in thousandths."""
    return quantity_millis(found["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def quantity_millis(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def group_of(found: Object) -> str:
    """The PodGroup of a pod, or nothing."""
    name: str = found["spec"].get("schedulingGroup", {}).get("podGroupName", "")
    return name


class Judge:
    """Looks at pods, gangs, nodes and, where there are some, quotas.

    Inside `with`, it looks all the time for what may never be, however short: a node or a quota that is exceeded.
    """

    def __init__(
        self,
        kube: Kube,
        sizes: Mapping[str, int],
        proxy: FaultyProxy | None = None,
        quotas: Mapping[str, int] | None = None,
    ) -> None:
        """`sizes` of gangs by name; `proxy` knows which binds were carried out; `quotas`: thousandths of a CPU that
        each ClusterQueue has."""
        self._kube, self.sizes, self._proxy, self._quotas = kube, sizes, proxy, dict(quotas or {})
        self._seen: dict[str, None] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> "Judge":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _keep_looking(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self._note(self._never())
            except Exception:  # the server is down: the test itself has made it so
                continue

    def _note(self, said: list[str]) -> None:
        self._seen.update(dict.fromkeys(said))

    def wait_until_sound(self, more: Callable[[], list[str]] = list) -> None:
        """Wait until there is nothing to complain of, `more` included; what may never be is not waited for."""
        complaints: list[str] = ["not looked at"]

        def sound() -> bool:
            self._kube.finish_deletions()  # no kubelet does, and a scheduler that is killed may leave some half done
            complaints[:] = [*self.complaints(), *more()]
            time.sleep(0.3)
            return not complaints

        until(sound, SETTLED_SECONDS, lambda: "\n".join(complaints[:20]))
        assert list(self._seen) == []

    def complaints(self) -> list[str]:
        never = self._never()
        self._note(never)
        return never + self._of_pods() + self._of_workloads()

    # What may never be.

    def _never(self) -> list[str]:
        said = [f"{name} is over-allocated by {-left}m" for name, left in self._free(-(2**31)).items() if left < 0]
        if self._proxy is not None:
            bound = {uid: nodes for uid, nodes in self._proxy.bound.items() if len(nodes) > 1}
            said += [f"pod {uid} was bound to {', '.join(nodes)}" for uid, nodes in bound.items()]
        if self._quotas:
            held: defaultdict[str, int] = defaultdict(int)
            workloads, pods = self._workloads(), self._queued_pods()
            owners = self._owners()  # looked up last: the Workloads and pods of who is gone go a moment later
            for each in workloads:
                admission = each.get("status", {}).get("admission") or {}
                if admission and each["metadata"]["ownerReferences"][0]["uid"] in owners:
                    held[admission["clusterQueue"]] += _reserved(admission)
            most = sum(self._quotas.values())
            if sum(held.values()) > most:
                said.append(f"{dict(held)} are reserved of {most}m")
            runs = sum(millis(each) for each in pods if each["spec"].get("nodeName") and owner_of(each) in owners)
            if runs > most:
                said.append(f"{runs}m of queued work runs where the quota is {most}m")
        return said

    # What must be in the end.

    def _free(self, priority: int) -> dict[str, int]:
        """What each node has left beside pods that are as urgent, or more."""
        free = {
            found["metadata"]["name"]: quantity_millis(found["status"]["allocatable"]["cpu"])
            for found in self._kube.objects("/api/v1/nodes")
        }
        for found in self._kube.pods().values():
            place = found["spec"].get("nodeName")
            if place in free and found["spec"].get("priority", 0) >= priority:
                free[place] -= millis(found)
        return free

    def _of_pods(self) -> list[str]:
        said: list[str] = []
        gangs: defaultdict[str, int] = defaultdict(int)
        waiting: defaultdict[str, list[Object]] = defaultdict(list)
        for found in self._kube.pods().values():
            if not found["spec"].get("nodeName"):
                waiting[group_of(found)].append(found)
            else:
                gangs[group_of(found)] += 1
        for group, size in self.sizes.items():
            if 0 < gangs[group] < size:
                said.append(f"gang {group} runs with {gangs[group]} of {size}")
        free: dict[int, dict[str, int]] = {}
        for group, pods in waiting.items():
            for found in pods:
                priority = found["spec"].get("priority", 0)
                if priority not in free:
                    free[priority] = self._free(priority)
                if QUEUE in (found["metadata"].get("labels") or {}):
                    continue  # of those, quota decides
                if not group and any(left >= millis(found) for left in free[priority].values()):
                    said.append(f"{found['metadata']['name']} waits, and there is room or could be made")
            size = self.sizes.get(group, 0)
            if size and len(pods) == size:
                each, priority = millis(pods[0]), pods[0]["spec"].get("priority", 0)
                if sum(left // each for left in free[priority].values() if left > 0) >= size:
                    said.append(f"gang {group} waits, and there is room or could be made")
        return said

    def _of_workloads(self) -> list[str]:
        """Who has quota runs, who has none does not, and nobody waits for quota that is there."""
        if not self._quotas:
            return []
        said: list[str] = []
        workloads = {each["metadata"]["ownerReferences"][0]["name"]: each for each in self._workloads()}
        holding = {
            name: _reserved(each["status"]["admission"])
            for name, each in workloads.items()
            if each.get("status", {}).get("admission")
        }
        left = sum(self._quotas.values()) - sum(holding.values())
        waiting: dict[str, int] = {}
        for job in self._kube.objects("/apis/batch/v1/namespaces/default/jobs"):
            name, is_suspended = job["metadata"]["name"], bool(job["spec"].get("suspend"))
            if is_suspended == (name in holding):
                said.append(f"job {name} {'is suspended' if is_suspended else 'runs'}, quota: {holding.get(name)}")
            if is_suspended:
                waiting[name] = job_millis(job)
        for pod in self._queued_pods():
            name = pod["metadata"]["name"]
            if pod["metadata"].get("ownerReferences"):
                continue
            if bool(pod["spec"].get("nodeName")) != (name in holding):
                said.append(f"pod {name} is on {pod['spec'].get('nodeName')!r}, quota: {holding.get(name)}")
            if name not in holding:
                waiting[name] = millis(pod)
        # Room may be kept for one that is too large for what is left.
        if waiting and max(waiting.values()) <= left:
            said.append(f"{waiting} wait, and {left}m of the quota are free")
        return said

    def _workloads(self) -> list[Object]:
        return self._kube.objects(f"/apis/{GROUP}/namespaces/default/workloads")

    def _owners(self) -> set[str]:
        """The uids of jobs and pods that are there."""
        jobs = self._kube.objects("/apis/batch/v1/namespaces/default/jobs")
        return {each["metadata"]["uid"] for each in (*jobs, *self._kube.pods().values())}

    def _queued_pods(self) -> list[Object]:
        """Pods that queue by themselves, or whose job does."""
        found = []
        for each in self._kube.pods().values():
            owners = each["metadata"].get("ownerReferences") or [{}]
            if QUEUE in (each["metadata"].get("labels") or {}) or owners[0].get("kind") == "Job":
                found.append(each)
        return found


def owner_of(found: Object) -> str:
    """The uid of a pod's job, or its own."""
    uid: str = (found["metadata"].get("ownerReferences") or [found["metadata"]])[0]["uid"]
    return uid


def job_millis(job: Object) -> int:
    """What the pods of a job take together, in thousandths of a CPU."""
    return millis(job["spec"]["template"]) * int(job["spec"]["parallelism"])


def _reserved(admission: Object) -> int:
    return sum(quantity_millis(each["resourceUsage"]["cpu"]) for each in admission["podSetAssignments"])
