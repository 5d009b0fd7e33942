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

    rows: Counts
    """Pods by row."""
    domains: dict[str, int]
    """Pods by domain."""
    domain_of: tuple[str | None, ...]
    """The domain that each machine is in, by the labels of its node; None where the term does not look at it."""
    machines: dict[str, int]
    """How many machines that are there to stay each domain has."""
    selected: Mask
    """By class of labels."""


@dataclass(frozen=True, slots=True, eq=False)
class Repelling:
    """The pods that keep away what their anti-affinity selects."""

    rows: Counts
    domains: dict[str, int]
    first: Shape


class ExistingPods:
    """Pods by machine and labels, and the anti-affinity among them."""

    def __init__(self, machines: tuple[Machine, ...], shapes: Shapes, memo: Memo) -> None:
        self._machines = machines
        self._memo = memo
        self._counted: dict[TopologyTerm, Counted] = {}
        self._repelling_terms: dict[LabelClass, tuple[TopologyTerm, ...]] = {}
        classes: dict[LabelClass, int] = {}
        self.place_of: dict[int, tuple[int, int]] = {}
        """The class of labels and the row of each counted pod, by identity."""
        self.repelling: dict[TopologyTerm, Repelling] = {}
        self.repels: dict[int, list[tuple[TopologyTerm, int, str]]] = {}
        """What each pod adds to that, by identity: term, row and domain."""
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
            found = self.repelling.get(term)
            if found is None:
                found = self.repelling[term] = Repelling(np.zeros(len(self._machines), np.int64), {}, shape)
            domain = labels.get(term.key)
            if domain is not None:
                found.rows[row] += 1
                found.domains[domain] = found.domains.get(domain, 0) + 1
                self.repels.setdefault(id(pod), []).append((term, row, domain))

    def terms_repelling(self, labels: LabelClass) -> tuple[TopologyTerm, ...]:
        """The terms of existing pods that keep away pods with these labels."""
        found = self._repelling_terms.get(labels)
        if found is None:
            by_key = dict(labels[1])
            found = tuple(term for term in self.repelling if term.selects(labels[0], by_key))
            self._repelling_terms[labels] = found
        return found

    def counted(self, term: TopologyTerm) -> Counted:
        found = self._counted.get(term)
        if found is None:
            found = self._counted[term] = self._count(term)
        return found

    def _count(self, term: TopologyTerm) -> Counted:
        selected = np.array([term.counts(namespace, dict(labels)) for namespace, labels in self._classes], np.bool_)
        pod_rows = self._pod_rows[selected[self._pod_classes]] if len(self._classes) else self._pod_rows
        takes_part = self._take_part(term)
        rows = np.where(takes_part, np.bincount(pod_rows, minlength=len(self._machines)), 0).astype(np.int64)
        domain_of = self._domains(term.key)
        domains: dict[str, int] = {}
        for row in np.flatnonzero(rows).tolist():
            domain = domain_of[row]
            if domain is not None:
                domains[domain] = domains.get(domain, 0) + int(rows[row])
        machines: dict[str, int] = {}
        for row in np.flatnonzero(takes_part).tolist():
            domain = self._machines[row].labels.get(term.key)
            if domain is not None and not self._machines[row].is_deleting:
                machines[domain] = machines.get(domain, 0) + 1
        looked_at = tuple(domain if part else None for domain, part in zip(domain_of, takes_part, strict=True))
        return Counted(rows, domains, looked_at, machines, selected)

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
