"""Jobs that say how long they stay after their end are removed then."""

from mooring.kubeapi.controllers.conditions import find_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds


class TTLAfterFinished(Controller):
    """Removes finished Jobs when their time is over."""

    name = "ttl-after-finished-controller"

    def start(self) -> None:
        self._jobs = self.informers.of("jobs.batch")
        self._jobs.on_change(lambda old, new: self._changed(new))

    def _changed(self, new: Object | None) -> None:
        if new is not None and new["spec"].get("ttlSecondsAfterFinished") is not None:
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        job = self._jobs.get(*key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        seconds, ended = job["spec"].get("ttlSecondsAfterFinished"), _finished_at(job)
        if seconds is None or ended is None:
            return
        wait = ended + seconds - self.now
        if wait > 0:
            self.enqueue(key, after=wait)
            return
        try:
            self.api.delete("jobs.batch", *key, uid=job["metadata"]["uid"], propagation="Foreground")
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _finished_at(job: Object) -> float | None:
    for type_ in ("Complete", "Failed"):
        found = find_condition(job.get("status") or {}, type_)
        if found is not None and found["status"] == "True":
            return timestamp_seconds(found["lastTransitionTime"])
    return None
