"""What manifests ask of Kueue that is not built: said in a line each, as it may look as if it were done."""

from collections.abc import Iterable, Iterator

from mooring.model.api.kueue import AdmissionCheck, ClusterQueue
from mooring.model.objects.picture import Manifests

ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"
CONTROLLERS = ("kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue")


def not_built(pictures: Iterable[Manifests]) -> Iterator[str]:
    """A line for each feature that somebody asks for, with who does."""
    checks = dict[str, list[str]]()
    queues, elastic = dict[str, None](), dict[str, None]()
    for picture in pictures:
        for check in picture.of(AdmissionCheck):
            if check.spec.controller_name in CONTROLLERS:
                named = checks.setdefault(check.spec.controller_name, [])
                named += [check.metadata.name] if check.metadata.name not in named else []
        queues |= {
            queue.metadata.name: None
            for queue in picture.of(ClusterQueue)
            if queue.spec.concurrent_admission_policy is not None
        }
        elastic |= {
            f"{job.metadata.namespace}/{job.metadata.name}": None
            for job in picture.jobs
            if (job.metadata.annotations or {}).get(ELASTIC_JOB) == "true"
        }
    for controller, names in checks.items():
        yield f"not built: {controller} ({_some(names)}); workloads wait until somebody sets the states of such checks"
    if queues:
        yield f"not built: concurrentAdmissionPolicy ({_some(queues)}); flavors are tried in their order, and kept"
    if elastic:
        yield f"not built: elastic jobs ({_some(elastic)}); what one grows by starts as others of its pods finish"


def _some(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
