"""Checks of slices, classes, claims and rules, like the API server's; and of the slices of one pool together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mooring.model.api.claims import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from mooring.model.api.devices import (
    BasicDevice,
    DeviceAttribute,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from mooring.model.cel.values import CelCompileError, Semver
from mooring.model.devices.compute_domains import ALLOCATION_MODES, ComputeDomain
from mooring.model.devices.selecting import compile_selector
from mooring.model.devices.sharing_strategies import problems as sharing_problems
from mooring.model.places import Place, show
from mooring.model.validation.terms import Subject, check_choice, check_node_selector, check_quantity

MOST_DEVICES = 128
MOST_REQUESTS = 32
MOST_ALTERNATIVES = 8
EFFECTS = ("NoSchedule", "NoExecute", "None")


def check_slice(subject: Subject, found: ResourceSlice) -> None:
    spec = found.spec
    for field, text in (("spec.driver", spec.driver), ("spec.pool.name", spec.pool.name)):
        if not text:
            subject.refuse(field, expected="a name", found="none")
    if spec.pool.resource_slice_count < 1:
        subject.refuse("spec.pool.resourceSliceCount", expected="1 or more", found=show(spec.pool.resource_slice_count))
    where = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    values = (spec.node_name, spec.node_selector, spec.all_nodes, spec.per_device_node_selection)
    given = [name for name, value in zip(where, values, strict=True) if value]
    if len(given) != 1:
        subject.refuse("spec", expected=f"exactly one of {', '.join(where)}", found=" and ".join(given) or "none")
    if spec.node_selector is not None:
        check_node_selector(subject, "spec.nodeSelector", spec.node_selector)
    devices = spec.devices or []
    if devices and spec.shared_counters:
        subject.refuse("spec", expected="devices or sharedCounters", found="both")
    if len(devices) > MOST_DEVICES:
        subject.refuse("spec.devices", expected=f"at most {MOST_DEVICES} devices", found=show(len(devices)))
    _check_unique(subject, "spec.devices", [device.name for device in devices])
    for index, device in enumerate(devices):
        _check_device(subject, f"spec.devices[{index}]", device)
    for index, counters in enumerate(spec.shared_counters or ()):
        for name, counter in (counters.counters or {}).items():
            check_quantity(subject, f"spec.sharedCounters[{index}].counters.{name}.value", counter.value)


def _check_device(subject: Subject, path: str, device: BasicDevice) -> None:
    for name, attribute in (device.attributes or {}).items():
        _check_attribute(subject, f"{path}.attributes.{name}", attribute)
    for name, capacity in (device.capacity or {}).items():
        check_quantity(subject, f"{path}.capacity.{name}.value", capacity.value)
        policy = capacity.request_policy
        if policy is not None:
            bounds = policy.valid_range
            amounts = [policy.default, *(policy.valid_values or ())]
            amounts += [bounds.min, bounds.max, bounds.step] if bounds is not None else []
            for amount in amounts:
                if amount is not None:
                    check_quantity(subject, f"{path}.capacity.{name}.requestPolicy", amount)
    for index, consumed in enumerate(device.consumes_counters or ()):
        for name, counter in (consumed.counters or {}).items():
            check_quantity(subject, f"{path}.consumesCounters[{index}].counters.{name}.value", counter.value)
    for index, taint in enumerate(device.taints or ()):
        _check_taint(subject, f"{path}.taints[{index}]", taint)


def _check_attribute(subject: Subject, path: str, found: DeviceAttribute) -> None:
    values = (found.int_value, found.bool_value, found.string_value, found.version_value)
    given = [value for value in values if value is not None]
    if len(given) != 1:
        subject.refuse(path, expected="exactly one of int, bool, string, version", found=f"{len(given)} of them")
    if found.version_value is not None and Semver.parse(found.version_value) is None:
        subject.refuse(f"{path}.version", expected="a semantic version such as 1.2.3", found=show(found.version_value))


def _check_taint(subject: Subject, path: str, taint: DeviceTaint) -> None:
    if not taint.key:
        subject.refuse(f"{path}.key", expected="a key", found="none")
    check_choice(subject, f"{path}.effect", taint.effect, EFFECTS)


def check_rule(subject: Subject, rule: DeviceTaintRule) -> None:
    _check_taint(subject, "spec.taint", rule.spec.taint)


def check_class(subject: Subject, found: DeviceClass) -> None:
    _check_selectors(subject, "spec.selectors", found.spec.selectors)
    _check_sharing(subject, "spec.config", found.spec.config)


def _check_sharing(subject: Subject, path: str, config: Sequence[DeviceClassConfiguration] | None) -> None:
    for field, expected, said in sharing_problems(config):
        subject.refuse(f"{path}{field}", expected=expected, found=said)


def check_claim(subject: Subject, found: ResourceClaim) -> None:
    _check_spec(subject, "spec", found.spec)


def check_claim_template(subject: Subject, found: ResourceClaimTemplate) -> None:
    _check_spec(subject, "spec.spec", found.spec.spec)


def _check_spec(subject: Subject, path: str, spec: ResourceClaimSpec) -> None:
    _check_sharing(subject, f"{path}.devices.config", spec.devices.config)
    requests = spec.devices.requests or []
    if len(requests) > MOST_REQUESTS:
        subject.refuse(f"{path}.devices.requests", expected=f"at most {MOST_REQUESTS}", found=show(len(requests)))
    _check_unique(subject, f"{path}.devices.requests", [request.name for request in requests])
    names = set[str]()
    for index, request in enumerate(requests):
        field = f"{path}.devices.requests[{index}]"
        alternatives = request.first_available or []
        if (request.exactly is None) == (not alternatives):
            found = "both" if alternatives else "none"
            subject.refuse(field, expected="either exactly or firstAvailable", found=found)
        if len(alternatives) > MOST_ALTERNATIVES:
            expected = f"at most {MOST_ALTERNATIVES}"
            subject.refuse(f"{field}.firstAvailable", expected=expected, found=show(len(alternatives)))
        names |= {request.name, *(f"{request.name}/{each.name}" for each in alternatives)}
        if request.exactly is not None:
            _check_request(subject, f"{field}.exactly", request.exactly)
        _check_unique(subject, f"{field}.firstAvailable", [each.name for each in alternatives])
        for number, each in enumerate(alternatives):
            _check_request(subject, f"{field}.firstAvailable[{number}]", each)
    for index, constraint in enumerate(spec.devices.constraints or ()):
        field = f"{path}.devices.constraints[{index}]"
        attributes = [each for each in (constraint.match_attribute, constraint.distinct_attribute) if each is not None]
        if len(attributes) != 1:
            found = "both" if attributes else "none"
            subject.refuse(field, expected="either matchAttribute or distinctAttribute", found=found)
        if "/" not in attributes[0]:
            expected = "a name with its domain, such as gpu.example.com/numa"
            subject.refuse(field, expected=expected, found=show(attributes[0]))
        for name in constraint.requests or ():
            if name not in names:
                expected = "the name of a request" + (f": {', '.join(sorted(names))}" if names else "")
                subject.refuse(f"{field}.requests", expected=expected, found=show(name))


def _check_request(subject: Subject, path: str, asked: ExactDeviceRequest) -> None:
    if not asked.device_class_name:
        subject.refuse(f"{path}.deviceClassName", expected="the name of a DeviceClass", found="none")
    check_choice(subject, f"{path}.allocationMode", asked.allocation_mode, (EXACT_COUNT, ALL_DEVICES))
    if asked.allocation_mode == EXACT_COUNT and asked.count < 1:
        subject.refuse(f"{path}.count", expected="1 or more", found=show(asked.count))
    if asked.allocation_mode == ALL_DEVICES and asked.count:
        subject.refuse(f"{path}.count", expected="none with allocationMode All", found=show(asked.count))
    _check_selectors(subject, f"{path}.selectors", asked.selectors)
    for name, amount in ((asked.capacity.requests or {}) if asked.capacity else {}).items():
        check_quantity(subject, f"{path}.capacity.requests.{name}", amount)
    for index, toleration in enumerate(asked.tolerations or ()):
        _check_toleration(subject, f"{path}.tolerations[{index}]", toleration)


def _check_toleration(subject: Subject, path: str, found: DeviceToleration) -> None:
    check_choice(subject, f"{path}.operator", found.operator, ("Equal", "Exists"))
    if found.operator == "Exists" and found.value:
        subject.refuse(f"{path}.value", expected="none with operator Exists", found=show(found.value))


def _check_selectors(subject: Subject, path: str, selectors: Sequence[DeviceSelector] | None) -> None:
    for index, each in enumerate(selectors or ()):
        field = f"{path}[{index}].cel.expression"
        if each.cel is None:
            subject.refuse(f"{path}[{index}]", expected="a CEL expression (cel)", found="none")
        try:
            compile_selector(each.cel.expression)
        except CelCompileError as error:
            subject.refuse(field, expected="a CEL expression over device", found=str(error))


def _check_unique(subject: Subject, path: str, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if not name:
            subject.refuse(f"{path}[{index}].name", expected="a name", found="none")
        if name in names[:index]:
            subject.refuse(f"{path}[{index}].name", expected="a name of its own", found=show(name))


def check_compute_domain(subject: Subject, found: ComputeDomain) -> None:
    spec = found.spec
    if spec.num_nodes < 0:
        subject.refuse("spec.numNodes", expected="0 or more", found=show(spec.num_nodes))
    if not spec.channel.resource_claim_template.name:
        subject.refuse("spec.channel.resourceClaimTemplate.name", expected="a name", found="none")
    check_choice(subject, "spec.channel.allocationMode", spec.channel.allocation_mode, ALLOCATION_MODES)


DEVICE_CHECKS: dict[type, Any] = {
    ComputeDomain: check_compute_domain,
    ResourceSlice: check_slice,
    DeviceClass: check_class,
    ResourceClaim: check_claim,
    ResourceClaimTemplate: check_claim_template,
    DeviceTaintRule: check_rule,
}


def check_pools(slices: Iterable[tuple[ResourceSlice, Place]]) -> None:
    """Refuse devices that draw on counters which no slice of their pool has, where all of its slices are there."""
    pools: dict[tuple[str, str, int], list[tuple[ResourceSlice, Place]]] = {}
    for found, place in slices:
        spec = found.spec
        pools.setdefault((spec.driver, spec.pool.name, spec.pool.generation), []).append((found, place))
    for members in pools.values():
        if len(members) == members[0][0].spec.pool.resource_slice_count:
            _check_counters(members)


def _check_counters(members: Sequence[tuple[ResourceSlice, Place]]) -> None:
    known = {each.name: set(each.counters or ()) for found, _ in members for each in found.spec.shared_counters or ()}
    for found, place in members:
        for path, set_name, counters in _consumed(found):
            subject = Subject(found, place)
            if set_name not in known:
                expected = "a counter set of the pool" + (f": {', '.join(sorted(known))}" if known else "; it has none")
                subject.refuse(f"{path}.counterSet", expected=expected, found=show(set_name))
            for name in counters:
                if name not in known[set_name]:
                    expected = f"a counter of {set_name}: {', '.join(sorted(known[set_name]))}"
                    subject.refuse(f"{path}.counters", expected=expected, found=show(name))


def _consumed(found: ResourceSlice) -> Iterator[tuple[str, str, list[str]]]:
    for index, device in enumerate(found.spec.devices or ()):
        for number, consumed in enumerate(device.consumes_counters or ()):
            yield (
                f"spec.devices[{index}].consumesCounters[{number}]",
                consumed.counter_set,
                list(consumed.counters or ()),
            )
