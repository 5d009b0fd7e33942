"""Pods that are on machines, as topology counts them."""

from dataclasses import dataclass

import numpy as np

from mooring.actions.capacity.karpenter.memo import Memo
from mooring.actions.capacity.karpenter.shapes import LabelClass, Shape, Shapes, TopologyTerm
from mooring.actions.capacity.karpenter.situation import Machine
from mooring.actions.capacity.karpenter.topology import Counts, takes_part
from mooring.actions.capacity.karpenter.type_columns import Mask, Rows
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Pod
from mooring.model.capacity.labels import HOSTNAME, current_name
from mooring.model.capacity.requirements import Requirements, from_labels


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What a term counts on each machine, before any pod is moved."""

    pods: Counts
    takes_part: Mask
    """Which machines the term looks at."""
    domains: tuple[str | None, ...]
    """The domain that each machine is in, by the labels of its node."""
    selected: Mask
    """By class of labels."""


@dataclass(frozen=True, slots=True)
class RepellingPod:
    """A pod that keeps away the pods that its anti-affinity selects."""

    pod: int
    """By identity."""
    row: int
    domain: str


class ExistingPods:
    """Pods by machine and labels, and the anti-affinity among them."""

    def __init__(self, machines: tuple[Machine, ...], shapes: Shapes, memo: Memo) -> None:
        self._machines = machines
        self._memo = memo
        self._counted: dict[TopologyTerm, Counted] = {}
        classes: dict[LabelClass, int] = {}
        self.place_of: dict[int, tuple[int, int]] = {}
        """The class of labels and the row of each counted pod, by identity."""
        self.repelling: dict[TopologyTerm, list[RepellingPod]] = {}
        self.repelling_shapes: dict[TopologyTerm, Shape] = {}
        for row, machine in enumerate(machines):
            if machine.node is None:
                continue
            for pod in machine.pods:
                if pod.is_terminal:
                    continue
                self._read_repelling(pod, row, shapes)
                if pod.metadata.deletion_timestamp is None:
                    labels = (pod.metadata.namespace, frozenset((pod.metadata.labels or {}).items()))
                    self.place_of[id(pod)] = classes.setdefault(labels, len(classes)), row
        self._classes = list(classes)
        places = np.array(list(self.place_of.values()), np.intp).reshape(-1, 2)
        self._pod_classes: Rows = places[:, 0]
        self._pod_rows: Rows = places[:, 1]

    def _read_repelling(self, pod: Pod, row: int, shapes: Shapes) -> None:
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None or not affinity.pod_anti_affinity.required:
            return
        shape = shapes.shape_of(pod)
        labels = self._machines[row].node_labels
        for term in dict.fromkeys(shape.kind.anti_affinity):
            self.repelling_shapes.setdefault(term, shape)
            found = self.repelling.setdefault(term, [])
            domain = labels.get(term.key)
            if domain is not None:
                found.append(RepellingPod(id(pod), row, domain))

    def counted(self, term: TopologyTerm) -> Counted:
        found = self._counted.get(term)
        if found is None:
            selected = np.array([term.counts(namespace, dict(labels)) for namespace, labels in self._classes], np.bool_)
            rows = self._pod_rows[selected[self._pod_classes]] if len(self._classes) else self._pod_rows
            pods = np.bincount(rows, minlength=len(self._machines)).astype(np.int64)
            found = Counted(pods, self._take_part(term), self._domains(term.key), selected)
            self._counted[term] = found
        return found

    def _domains(self, key: str) -> tuple[str | None, ...]:
        domains: list[str | None] = []
        for machine in self._machines:
            domain = machine.node_labels.get(key)
            if domain is None and key == HOSTNAME and machine.node is not None:
                domain = machine.node.name
            domains.append(domain)
        return tuple(domains)

    def _take_part(self, term: TopologyTerm) -> Mask:
        keys = frozenset(key for each in term.node_filter.terms for key in each)
        answers: dict[tuple[Requirements, tuple[Taint, ...]], bool] = {}
        mask = np.zeros(len(self._machines), np.bool_)
        for row, machine in enumerate(self._machines):
            if machine.node is None:
                continue
            seen = project(machine.node_labels, keys) if keys else Requirements()
            taints = tuple(machine.node.spec.taints or ()) if term.node_filter.honors_taints else ()
            if (seen, taints) not in answers:
                answers[seen, taints] = takes_part(term.node_filter, seen, taints, self._memo)
            mask[row] = answers[seen, taints]
        return mask


def project(labels: object, keys: frozenset[str]) -> Requirements:
    """The labels that are read at all, as requirements: few machines differ in those."""
    assert isinstance(labels, dict)
    return from_labels({key: value for key, value in labels.items() if current_name(key) in keys})
