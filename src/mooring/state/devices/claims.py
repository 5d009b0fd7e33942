"""Claims and what they hold: pods take what they claim with their place, and give it up with it.

A claim that was made for one pod, from a template, is alike for all pods of that template: their shape says what is
asked for, not under which name. A claim that pods name is one for all of them: once it is allocated, they go where its
devices are.

The devices of a claim are held under its key in the device table. They are given back when nobody uses the claim any
more, as Kubernetes' resourceclaim controller deallocates it then.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import msgspec

from mooring.model.api.claims import AllocationResult, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimSpec
from mooring.model.api.devices import DeviceTaint
from mooring.model.api.pods import Pod
from mooring.model.decisions import ClaimReservation
from mooring.model.devices.compute_domains import domain_of
from mooring.model.devices.naming import AskedClaim, ClaimName, claim_names, is_made_for
from mooring.model.devices.requests import ClaimRequests, compile_claim, tolerates
from mooring.model.keys import PodKey
from mooring.model.values.quantity import Nanos, parse_quantity
from mooring.state.devices.allocator import CANNOT_ALLOCATE, Solution, allocate
from mooring.state.devices.answers import ClaimAnswers
from mooring.state.devices.extended import ServedResources
from mooring.state.devices.published import PublishedDevices
from mooring.state.devices.results import allocation_result
from mooring.state.devices.table import DeviceShare, DeviceTable
from mooring.state.pods import PodRecord, PodTable
from mooring.state.related import RelatedObjects
from mooring.state.shapes import Shape
from mooring.state.undo import UndoLog

_encode = msgspec.msgpack.Encoder().encode


Claim: TypeAlias = tuple[str, ResourceClaimSpec]
"""namespace/name, and what it asks for"""


@dataclass(frozen=True, slots=True)
class ClaimState:
    """A claim as it stands now, with what is assumed of it."""

    allocation: AllocationResult | None = None
    users: frozenset[str] = frozenset()
    """The pods that it is reserved for, namespace/name."""
    is_confirmed: bool = False
    """The world knows of the allocation."""


NEW = ClaimState()


class HeldClaims(NamedTuple):
    """What a pod has by its claims."""

    states: Mapping[str, ClaimState]
    """By claim, those that it uses."""
    is_lacking: bool = False
    """It has a place, and others still have the devices that it is to get there."""


class ClaimTable:
    """All claims; gives out devices to pods that have some (a `DeviceTaker`)."""

    def __init__(
        self, related: RelatedObjects, devices: DeviceTable, published: PublishedDevices, pods: PodTable, log: UndoLog
    ) -> None:
        self._related = related
        self._devices = devices
        self._published = published
        self._pods = pods
        self._log = log
        self._states: dict[str, ClaimState] = {}
        self._named_by: dict[str, set[str]] = {}
        """By claim, the pods that have ever named it."""
        self._number_of: dict[bytes, int] = {}
        self._specs: list[ResourceClaimSpec] = []
        self._compiled: dict[int, ClaimRequests | str] = {}
        self._domains: dict[int, str] = {}
        self._answers: dict[tuple[int, ...], ClaimAnswers] = {}
        self._lacking: dict[int, list[PodRecord]] = {}
        """By row, pods that hold a place there whose devices others still have."""
        self._served: dict[PodKey, PodRecord] = {}
        """Pods that lacked devices until others were released in a trial."""
        self._is_paused = False
        """Nobody who lacks devices is served."""
        self._makes_claims = True
        self._pods_on: dict[int, set[PodKey]] = {}
        """By row, the pods with claims that have a place there."""
        self.extended = ServedResources(related, devices)
        self._movable: dict[int, list[PodRecord]] | None = None
        """By row, members of a gang that is being placed."""
        self._has_rearranged = False
        self._packs = False
        self._most_steps = 0
        self._binding_seconds = 600.0
        """How long devices may take to have their binding conditions."""

    def search(self, *, packs: bool, most_steps: int) -> None:
        """How devices are looked for: so that as little as possible is broken up, or in order; and after how many steps
        that is given up, 0 for never."""
        self._packs, self._most_steps = packs, most_steps
        self._answers.clear()

    def bind_within(self, seconds: float) -> None:
        """How long devices may take to be ready once they are given to a pod."""
        self._binding_seconds = seconds

    # What pods ask for.

    def leave_making_to_controllers(self) -> None:
        """From now on claims of templates exist when the world shows them; before, they exist with their pods."""
        self._makes_claims = False

    def asked_by(self, pod: Pod, *, bound: bool) -> tuple[AskedClaim, ...] | None:
        """The claims of a pod as its shape has them; None if it has none."""
        resources = self.extended.asked_by(pod) if self.extended.is_any else ()
        if not pod.spec.resource_claims and not resources:
            return None
        asked = [self._asked(pod, each, bound) for each in claim_names(pod)] if pod.spec.resource_claims else []
        if resources:
            number = self.number_of(self.extended.claim(pod, resources))
            asked.append(AskedClaim(number, resources=resources, is_alone=self._published.has_wide_pools))
        return tuple(asked)

    def _asked(self, pod: Pod, name: ClaimName, bound: bool) -> AskedClaim:
        self._named_by.setdefault(name.key, set()).add(pod.key)
        if name.template:
            template = self._template(name)
            if template is None:
                return AskedClaim(missing=f'pod "{pod.key}": ResourceClaim not created yet')
            return AskedClaim(spec=self.number_of(template), is_alone=self._published.has_wide_pools)
        claim = self._related.resource_claims.get(name.key)
        if claim is None:
            return AskedClaim(missing=f'could not find ResourceClaim "{name.key}"')
        if claim.metadata.deletion_timestamp is not None:
            return AskedClaim(missing=f'resourceclaim "{claim.metadata.name}" is being deleted')
        if name.is_generated and not is_made_for(claim, pod):
            why = f"ResourceClaim {name.key} was not created for Pod {pod.key} (Pod is not owner)"
            return AskedClaim(missing=why)
        if name.is_generated and (bound or self.state(name.key).allocation is None):
            return AskedClaim(spec=self.number_of(claim.spec), is_alone=self._published.has_wide_pools)
        return AskedClaim(key=name.key)

    def _template(self, name: ClaimName) -> ResourceClaimSpec | None:
        """What a claim will ask for that is still to be made from a template, if it is made here."""
        found = self._related.resource_claim_templates.get(name.template) if self._makes_claims else None
        return None if found is None else found.spec.spec

    def number_of(self, spec: ResourceClaimSpec) -> int:
        """A number for what a claim asks for."""
        encoded = _encode(spec)
        number = self._number_of.get(encoded)
        if number is None:
            number = self._number_of[encoded] = len(self._specs)
            self._specs.append(spec)
        return number

    def spec(self, number: int) -> ResourceClaimSpec:
        return self._specs[number]

    def compiled(self, number: int) -> ClaimRequests | str:
        """What a claim asks for; a text if a class is missing."""
        found = self._compiled.get(number)
        if found is None:
            found = self._compiled[number] = compile_claim(self._specs[number], self._related.device_classes)
        return found

    def answers(self, specs: tuple[int, ...]) -> ClaimAnswers:
        """What each device state has for claims that ask for this, together."""
        found = self._answers.get(specs)
        if found is None:
            compiled = [self.compiled(number) for number in specs]
            claims = [each for each in compiled if not isinstance(each, str)]
            assert len(claims) == len(compiled), "a class is missing"
            found = self._answers[specs] = ClaimAnswers(
                self._devices, claims, most_steps=self._most_steps, packs=self._packs
            )
        return found

    def pods_naming(self, key: str) -> Iterable[str]:
        """The pods that name a claim, or did."""
        return tuple(self._named_by.get(key, ()))

    def domain_of(self, shape: Shape) -> str:
        """The ComputeDomain that such pods are of; nothing if they are of none."""
        for asked in shape.claims or ():
            if asked.key:
                claim = self._related.resource_claims.get(asked.key)
                found = "" if claim is None else domain_of(claim.spec)
            else:
                found = "" if asked.spec < 0 else self._domain_of_spec(asked.spec)
            if found:
                return found
        return ""

    def _domain_of_spec(self, number: int) -> str:
        found = self._domains.get(number)
        if found is None:
            found = self._domains[number] = domain_of(self._specs[number])
        return found

    # What the world says.

    def put(self, claim: ResourceClaim) -> None:
        key = claim.key
        before = self._states.get(key, NEW)
        allocation = claim.status.allocation
        consumers = claim.status.reserved_for or ()
        users = frozenset(f"{claim.metadata.namespace}/{each.name}" for each in consumers if each.resource == "pods")
        if allocation is None and before.allocation is not None and not before.is_confirmed:
            return  # from before the world learnt of our decision
        if allocation is not None and before.allocation is not None and _same_devices(allocation, before.allocation):
            self._states[key] = ClaimState(allocation, users | before.users, is_confirmed=True)
            return
        self._states[key] = ClaimState(allocation, users, is_confirmed=allocation is not None)
        self._devices.give_back(key)
        if allocation is not None:
            self._devices.take(key, shares_of(allocation))
        if allocation is not None or before.allocation is not None:
            self._devices.version += 1

    def remove(self, key: str) -> None:
        before = self._states.pop(key, NEW)
        self._devices.give_back(key)
        if before.allocation is not None:
            self._devices.version += 1

    def classes_changed(self) -> None:
        """A class came, went or changed: everything that is compiled is to be compiled anew."""
        self.extended.classes_changed()
        self._compiled.clear()
        self._answers.clear()
        self._devices.version += 1

    # Taking and giving back.

    def state(self, key: str) -> ClaimState:
        return self._states.get(key, NEW)

    def claims_of(self, pod: Pod) -> list[tuple[str, ResourceClaimSpec]]:
        """The claims of a pod, as far as they exist: namespace/name, and what each asks for."""
        found = []
        for name in claim_names(pod):
            claim = self._related.resource_claims.get(name.key)
            spec = claim.spec if claim is not None else self._template(name) if name.template else None
            if spec is not None:
                found.append((name.key, spec))
        return found

    def _keys_of(self, pod: Pod) -> list[str]:
        return [*(key for key, _ in self.claims_of(pod)), extended_key(pod)]

    def concerns(self, shape: Shape) -> bool:
        return shape.claims is not None

    def take(self, record: PodRecord, row: int) -> None:
        self._come(row, record.key)
        claims = [*self.claims_of(record.pod), *self._extended_claim(record, row)]
        wanted = [(key, spec) for key, spec in claims if self.state(key).allocation is None]
        if wanted and not self._allocate(wanted, record, row):
            self._lack(record, row)
            return
        for key, _ in claims:
            state = self.state(key)
            if record.key not in state.users:
                self._set(key, replace(state, users=state.users | {record.key}))
        if self._movable is not None:
            self._let_move(self._movable.setdefault(row, []), record)

    def _allocate(self, claims: Sequence[Claim], record: PodRecord, row: int) -> bool:
        specs = tuple(self.number_of(spec) for _, spec in claims)
        if any(isinstance(self.compiled(number), str) for number in specs):
            return False
        solution = self.answers(specs).solution(self._devices.of_row(row).code)
        if isinstance(solution, str):
            moved = self._movable_claims(row)
            solution = self._solve_together(row, moved, specs) if moved else solution
            claims = [*moved, *claims]
        if isinstance(solution, str):
            solution, claims = self._after_leaving(row, specs), claims[-len(specs) :]
        if isinstance(solution, str):
            return False
        self._hand_out(claims, solution, record.node_name, row)
        return True

    def _after_leaving(self, row: int, specs: tuple[int, ...]) -> Solution | str:
        """What claims get of the devices of pods that are on their way out: a pod is promised the very ones."""
        leaving = [other for other in self._pods.on(row) if other.leaving is not None and other.shape.claims]
        keys = self.used_only_by(leaving) if leaving else set()
        if not keys:
            return CANNOT_ALLOCATE
        return self.answers(specs).solution(self._devices.state_without(row, keys).code)

    def _hand_out(self, claims: Sequence[Claim], solution: Solution, node: str, row: int) -> None:
        """Let claims have what was found for them, whatever they had before."""
        found = self._devices.on_row.get(row)
        names = found.pool_names if found is not None else ()
        inventory = self._devices.of_row(row).inventory
        for key, _ in claims:
            self._devices.give_back(key)
        for (key, spec), devices in zip(claims, solution.claims, strict=True):
            allocation = allocation_result(key, spec, devices, inventory, names, node, self._related)
            self._devices.take(key, shares_of(allocation))
            self._set(key, replace(self.state(key), allocation=allocation, is_confirmed=False))
            if len(self._named_by.get(key, ())) > 1:
                self._devices.version += 1  # others go where its devices are now

    # Rearranging.

    @contextmanager
    def rearranging(self) -> Iterator[None]:
        """While members of a gang find their places: those that have theirs already may get other devices there, if
        that lets one more have its own."""
        outer, self._movable = self._movable, {}
        try:
            yield
        finally:
            self._movable = outer
            if self._has_rearranged:
                self._has_rearranged = False
                self._devices.version += 1  # what was said to fit by moving others fits no more

    def _let_move(self, movable: list[PodRecord], record: PodRecord) -> None:
        self._log.note(movable.remove, record)
        movable.append(record)

    def fits_together(self, row: int, specs: tuple[int, ...]) -> bool:
        """Whether claims fit on a row if those that may be moved there are."""
        moved = self._movable_claims(row)
        if not moved or isinstance(self._solve_together(row, moved, specs), str):
            return False
        self._has_rearranged = True
        return True

    def _movable_claims(self, row: int) -> list[Claim]:
        """The claims of members on a row that nobody else uses."""
        records = self._movable.get(row, ()) if self._movable is not None else ()
        claims = [(record, claim) for record in records for claim in self.claims_of(record.pod)]
        return [claim for record, claim in claims if self.state(claim[0]).users == {record.key}]

    def _solve_together(self, row: int, moved: Sequence[Claim], specs: tuple[int, ...]) -> Solution | str:
        state = self._devices.state_without(row, {key for key, _ in moved})
        numbers = [*(self.number_of(spec) for _, spec in moved), *specs]
        compiled = [self.compiled(number) for number in numbers]
        claims = [each for each in compiled if not isinstance(each, str)]
        return allocate(state, claims, most_steps=self._most_steps, packs=self._packs)

    # Going, and coming back.

    def held_by(self, record: PodRecord) -> HeldClaims:
        if record.key in self._served or record in self._lacking.get(record.row, ()):
            return HeldClaims({}, is_lacking=True)
        states = {key: self.state(key) for key in self._keys_of(record.pod)}
        return HeldClaims({key: state for key, state in states.items() if record.key in state.users})

    def restore(self, record: PodRecord, row: int, held: HeldClaims) -> None:
        self._come(row, record.key)
        if held.is_lacking:
            self._lack(record, row)
        for key, before in held.states.items():
            now = self.state(key)
            state = before if now.allocation is None else now  # others may use it as well
            self._set(key, replace(state, users=now.users | {record.key}))
            if now.allocation is None and before.allocation is not None:
                self._devices.take(key, shares_of(before.allocation))
                if len(self._named_by.get(key, ())) > 1:
                    self._devices.version += 1

    def give_back(self, record: PodRecord, row: int) -> None:
        self._go(row, record.key)
        if self._movable is not None and record in self._movable.get(row, ()):
            self._log.note(self._let_move, self._movable[row], record)
            self._movable[row].remove(record)
        self._forget_lacking(record, row)
        self._forget_served(record)
        freed = False
        for key in self._keys_of(record.pod):
            state = self.state(key)
            if record.key not in state.users:
                continue
            users = state.users - {record.key}
            if users:
                self._set(key, replace(state, users=users))
                continue
            self._set(key, NEW)
            self._devices.give_back(key)
            freed = True
            if len(self._named_by.get(key, ())) > 1:
                self._devices.version += 1
        if freed:
            self.serve_lacking(row)

    def _come(self, row: int, key: PodKey) -> None:
        self._log.note(self._go, row, key)
        self._pods_on.setdefault(row, set()).add(key)

    def _go(self, row: int, key: PodKey) -> None:
        self._log.note(self._come, row, key)
        self._pods_on[row].discard(key)

    def serve_lacking(self, row: int) -> None:
        """Devices became free on a row: pods that hold a place there without devices get theirs."""
        if self._is_paused or self._log.is_undoing:
            return
        for record in list(self._lacking.get(row, ())):
            self._forget_lacking(record, row)
            if record.row == row:
                if self._log.depth:  # outside of a trial nobody comes back
                    self._note_served(record)
                self.take(record, row)

    @contextmanager
    def restoring(self, row: int) -> Iterator[None]:
        """While a pod comes back to a row in a trial: pods that were served because it was gone wait behind it."""
        served = [record for record in self._served.values() if record.row == row]
        self._is_paused = True
        for record in reversed(served):
            self.give_back(record, row)
            self._come(row, record.key)
            self._lack(record, row, first=True)
        try:
            yield
        finally:
            self._is_paused = False
        self.serve_lacking(row)

    def _note_served(self, record: PodRecord) -> None:
        self._log.note(self._forget_served, record)
        self._served[record.key] = record

    def _forget_served(self, record: PodRecord) -> None:
        if self._served.pop(record.key, None) is not None:
            self._log.note(self._note_served, record)

    def _lack(self, record: PodRecord, row: int, first: bool = False) -> None:
        self._log.note(self._forget_lacking, record, row)
        waiting = self._lacking.setdefault(row, [])
        waiting.insert(0 if first else len(waiting), record)

    def _forget_lacking(self, record: PodRecord, row: int) -> None:
        waiting = self._lacking.get(row)
        if waiting and record in waiting:
            self._log.note(self._lack, record, row)
            waiting.remove(record)

    def driven_away(self) -> Iterator[tuple[str, str, float]]:
        """Pods with a device that is tainted NoExecute: the taint in words, and for how long their claim bears it."""
        for found in self._devices.on_row.values():
            for position, taint in found.inventory.driving_away:
                device, pool = found.inventory.devices[position], found.inventory.pool_of[position]
                for holder in self._devices.holders(device.driver, found.pool_names[pool], device.name):
                    state = self.state(str(holder))
                    seconds = _borne_seconds(state.allocation, device.name, taint)
                    words = f"{taint.key}:{taint.effect} of device {device.name}"
                    yield from ((pod, words, seconds) for pod in sorted(state.users))

    def has_pods_on(self, row: int) -> bool:
        """Whether any pod on a row has devices: were it gone, they might be free."""
        return bool(self._pods_on.get(row)) or self._devices.of_row(row).taken.withheld != 0

    def used_only_by(self, pods: Sequence[PodRecord]) -> set[str]:
        """The claims that nobody but these pods uses."""
        users = frozenset(record.key for record in pods)
        keys = [key for record in pods if record.shape.claims for key in self._keys_of(record.pod)]
        return {key for key in keys if self.state(key).users and self.state(key).users <= users}

    def reservations(self, record: PodRecord) -> tuple[ClaimReservation, ...]:
        """What is to be written of a pod's claims when it is bound."""
        made = []
        for name in claim_names(record.pod):
            state = self.state(name.key)
            if record.key in state.users:
                allocation = None if state.is_confirmed else state.allocation
                made.append(
                    ClaimReservation(name.key, allocation, name.template, binding_seconds=self._binding_seconds)
                )
        extended = self.state(extended_key(record.pod))
        if record.key in extended.users:
            allocation = None if extended.is_confirmed else extended.allocation
            for key, spec in self._extended_claim(record, record.row):
                mappings = self.extended.mappings(record.pod, spec)
                made.append(
                    ClaimReservation(
                        key, allocation, spec=spec, mappings=mappings, binding_seconds=self._binding_seconds
                    )
                )
        return tuple(made)

    # Extended resources.

    def _extended_claim(self, record: PodRecord, row: int) -> list[Claim]:
        """The claim for the extended resources of a pod that a node does not offer itself, if there are any."""
        asked = [each for each in record.shape.claims or () if each.resources]
        if not asked:
            return []
        rest = self.extended.left_by(row, asked[0].resources)
        return [(extended_key(record.pod), self.extended.claim(record.pod, rest))] if rest else []

    def extended_spec(self, asked: AskedClaim, pod: Pod, row: int) -> int | None:
        """What the claim for extended resources asks for on a row; None if the node has them all itself."""
        rest = self.extended.left_by(row, asked.resources)
        if len(rest) == len(asked.resources):
            return asked.spec
        return self.number_of(self.extended.claim(pod, rest)) if rest else None

    def has_devices(self, pod: Pod) -> bool:
        """Whether a pod that has a place has everything that it claims by name or template."""
        return all(pod.key in self.state(key).users for key, _ in self.claims_of(pod))

    def _set(self, key: str, state: ClaimState) -> None:
        self._log.note(self._put_back, key, self._states.get(key, NEW))
        self._states[key] = state

    def _put_back(self, key: str, state: ClaimState) -> None:
        self._states[key] = state


def extended_key(pod: Pod) -> str:
    """The claim for a pod's extended resources; Kubernetes draws a suffix by lot."""
    return f"{pod.key}-extended-resources"


def shares_of(allocation: AllocationResult) -> tuple[DeviceShare, ...]:
    """What an allocation takes of devices; adminAccess takes nothing."""
    shares = [_share(each) for each in allocation.devices.results or () if not each.admin_access]
    merged: dict[tuple[str, str, str], DeviceShare] = {}
    for share in shares:
        known = merged.get((share.driver, share.pool, share.device))
        merged[share.driver, share.pool, share.device] = share if known is None else _together(known, share)
    return tuple(merged.values())


def _share(result: DeviceRequestAllocationResult) -> DeviceShare:
    if result.share_id is None:
        return DeviceShare(result.driver, result.pool, result.device)
    amounts = {name: parse_quantity(each) for name, each in (result.consumed_capacity or {}).items()}
    return DeviceShare(result.driver, result.pool, result.device, tuple(sorted(amounts.items())))


def _together(one: DeviceShare, other: DeviceShare) -> DeviceShare:
    """Two shares of one device in one claim."""
    total: dict[str, int] = dict(one.amounts or ())
    for name, amount in other.amounts or ():
        total[name] = total.get(name, 0) + amount
    return replace(one, amounts=tuple((name, Nanos(total[name])) for name in sorted(total)))


def _borne_seconds(allocation: AllocationResult | None, device: str, taint: DeviceTaint) -> float:
    """For how long an allocation bears a taint of a device: not at all, the shortest time of those that do, or ever."""
    results = [] if allocation is None else allocation.devices.results or []
    used = [
        toleration
        for result in results
        if result.device == device
        for toleration in result.tolerations or ()
        if tolerates(toleration, taint)
    ]
    limits = [float(found.toleration_seconds) for found in used if found.toleration_seconds is not None]
    if not used:
        return 0.0
    return max(0.0, min(limits)) if limits else math.inf


def _same_devices(one: AllocationResult, other: AllocationResult) -> bool:
    return shares_of(one) == shares_of(other)
