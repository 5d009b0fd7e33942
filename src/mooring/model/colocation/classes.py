"""Koordinator's priority classes and QoS classes: by label, by band of priorities, or by Kubernetes' own class."""

import msgspec

from mooring.model.api.pods import Pod
from mooring.model.kubelet.qos import qos_class as kubernetes_qos

PRIORITY_LABEL = "koordinator.sh/priority-class"
QOS_LABEL = "koordinator.sh/qosClass"
PROD, MID, BATCH, FREE, NONE = "koord-prod", "koord-mid", "koord-batch", "koord-free", ""
PRIORITY_CLASSES = (PROD, MID, BATCH, FREE)
BANDS = {PROD: range(9000, 10_000), MID: range(7000, 8000), BATCH: range(5000, 6000), FREE: range(3000, 4000)}
LSE, LSR, LS, BE, SYSTEM = "LSE", "LSR", "LS", "BE", "SYSTEM"
QOS_CLASSES = (LSE, LSR, LS, BE, SYSTEM)
_BY_KUBERNETES = {"Guaranteed": LSR, "Burstable": LS, "BestEffort": BE}


def raw_priority_class(pod: Pod) -> str:
    """The class that the label or the priority of a pod says; empty if neither says any."""
    labelled = (pod.metadata.labels or {}).get(PRIORITY_LABEL)
    if labelled is not None:
        return labelled if labelled in PRIORITY_CLASSES else NONE
    priority = pod.spec.priority
    return next((name for name, band in BANDS.items() if priority is not None and priority in band), NONE)


def priority_class(pod: Pod) -> str:
    """The class of a pod; where nothing says one, best-effort pods are batch and all others prod."""
    return raw_priority_class(pod) or (BATCH if qos(pod) == BE else PROD)


def qos(pod: Pod) -> str:
    """The QoS class of a pod: its label's, else what Kubernetes' class of the pod as it stands means here."""
    labelled = (pod.metadata.labels or {}).get(QOS_LABEL)
    if labelled in QOS_CLASSES:
        return labelled
    return _BY_KUBERNETES[kubernetes_qos(msgspec.to_builtins(pod.spec), is_defaulted=True)]
