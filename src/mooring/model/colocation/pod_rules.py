"""Which pods Koordinator's webhook refuses: QoS, priority class and requests must go together."""

from mooring.model.api.pods import Pod
from mooring.model.colocation.classes import (
    BATCH,
    BE,
    FREE,
    LSE,
    LSR,
    MID,
    NONE,
    PROD,
    QOS_LABEL,
    raw_priority_class,
)
from mooring.model.colocation.estimates import NAMES
from mooring.model.values.quantity import NANO, format_quantity
from mooring.model.values.requests import CPU, pod_requests

REFUSED = {BE: (NONE, PROD), LSR: (NONE, MID, BATCH, FREE)}
"""By QoS class: the priority classes that it does not go with."""
_REQUESTS = "pod.spec.containers[*].resources.requests"


def colocation_errors(pod: Pod) -> list[str]:
    """What is wrong with a pod, in Kubernetes' form of errors, each with its field."""
    qos = (pod.metadata.labels or {}).get(QOS_LABEL, NONE)
    requests = pod_requests(pod)
    found = []
    if qos != BE and any(requests.get(name) for name in NAMES[BATCH].values()):
        why = f"must specify koordinator QoS {BE} with koordinator colocation resources"
        found.append(f"labels.{QOS_LABEL}: Required value: {why}")
    raw = raw_priority_class(pod)
    if raw in REFUSED.get(qos, ()):
        found.append(f"Pod: Forbidden: {QOS_LABEL}={qos} and priorityClass={raw} cannot be used in combination")
    if qos in (LSR, LSE):
        cpus = requests.get(CPU, 0)
        if not cpus:
            found.append(f"{_REQUESTS}: Required value: LSR Pod must declare the requested CPUs")
        elif cpus % NANO:
            why = "the requested CPUs of LSR Pod must be integer"
            found.append(f'{_REQUESTS}: Invalid value: "{format_quantity(cpus)}": {why}')
    return found


def refusal_text(errors: list[str]) -> str:
    """Errors as Kubernetes joins them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""
