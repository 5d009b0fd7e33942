"""Whether pods may run on a flavor's nodes: its taints against tolerations, its labels against selectors."""

from collections.abc import Mapping

from mooring.model.api.kueue import ResourceFlavor
from mooring.model.api.pods import PodSpec
from mooring.model.values.selectors import Requirement, compile_equality, make_selector
from mooring.model.values.tolerations import untolerated


class FlavorMatcher:
    """Answers once for each flavor and each distinct way of selecting nodes; workloads repeat these endlessly."""

    def __init__(self, flavors: Mapping[str, ResourceFlavor]) -> None:
        self._flavors = flavors
        self._answers: dict[tuple[str, int], str] = {}

    def mismatch(self, flavor_name: str, selection: int, spec: PodSpec) -> str:
        """Say why the pods cannot use the flavor; empty if they can. Equal numbers mean equal selections."""
        key = (flavor_name, selection)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _mismatch(self._flavors.get(flavor_name), flavor_name, spec)
        return answer


def _mismatch(flavor: ResourceFlavor | None, name: str, spec: PodSpec) -> str:
    if flavor is None:
        return f"flavor {name} not found"
    tolerations = [*(spec.tolerations or ()), *(flavor.spec.tolerations or ())]
    left = untolerated(tolerations, flavor.spec.node_taints or ())
    if left:
        return f"untolerated taint {left[0].key}={left[0].value}:{left[0].effect} in flavor {name}"
    if not _selects(spec, flavor.spec.node_labels or {}):
        return f"flavor {name} doesn't match node affinity"
    return ""


def _selects(spec: PodSpec, labels: Mapping[str, str]) -> bool:
    """Ask only for labels that the flavor speaks of; about the others its nodes may differ."""
    known = {key: value for key, value in (spec.node_selector or {}).items() if key in labels}
    if not compile_equality(known).matches(labels):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    terms = []
    for term in affinity.required.node_selector_terms:
        requirements = [
            Requirement(found.key, found.operator, frozenset(found.values or ()))
            for found in term.match_expressions or ()
            if found.key in labels
        ]
        if not requirements:
            return True  # one term that this flavor cannot contradict is enough, as terms are alternatives
        terms.append(make_selector(requirements))
    return any(term.matches(labels) for term in terms) if terms else True
