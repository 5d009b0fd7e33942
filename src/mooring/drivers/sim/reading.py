"""A scenario file and everything that it names: read, checked, and ready to be run anywhere.

Whatever is wrong is refused before anything runs, with file, line and field.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.config.scheduler import convert, suggestion
from mooring.config.settings import Settings, load_documents, parse_settings
from mooring.config.tenant_policy import API_VERSION
from mooring.drivers.sim.faults import Change, Chosen, Failures, Reclaims
from mooring.drivers.sim.places import Places
from mooring.drivers.sim.rehearsal import rehearse
from mooring.drivers.sim.replay import bound_by_log
from mooring.drivers.sim.runs import PolicyInput, Prepared
from mooring.drivers.sim.scenario import (
    KIND,
    ClusterSource,
    NodeChoice,
    PlannedChange,
    Policy,
    Scenario,
    TraceSource,
)
from mooring.drivers.sim.submissions import Document, Given
from mooring.drivers.sim.traces import TRACES
from mooring.drivers.sim.work_reading import WorkReader
from mooring.engine.plugin import ScoreAnswers
from mooring.errors import ConfigError, InputError
from mooring.model.api.meta import timestamp_seconds
from mooring.model.kubelet.distributions import EXPECTED_DISTRIBUTION, Distribution, parse_distribution
from mooring.model.kubelet.plan import Timings
from mooring.model.loading.documents import read_documents
from mooring.model.objects.kinds import as_mapping
from mooring.model.places import Place
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.plugins import DEFAULT_PLUGINS, OPTIONAL_PLUGINS

SAMPLES = 500
"""Of a run whose scenario does not say how many."""
LARGEST_SEED = 2**32 - 1
PLACES = ("Node", "NodeList", "NodePool", "Provisioner")
"""What pods can be on, or what that can be bought from."""


def read_scenario(path: Path) -> Prepared:
    """Read and check a scenario."""
    return ScenarioReader(path).prepare()


class ScenarioReader:
    """Reads one scenario; fields are named as in the file."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(str(path), "", expected="a scenario", found=str(error.strerror).lower()) from error
        documents = load_documents(path)
        self.places = Places(path, content)
        self.folder = path.parent
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise ConfigError(str(path), "", expected=f"one document of kind {KIND}", found=f"{len(documents)}")
        self._document = documents[0]
        self._files: dict[str, bytes] = {}
        """Everything else that was read, for the digest."""

    def prepare(self) -> Prepared:
        scenario = self._typed()
        start = timestamp_seconds(scenario.start)
        if start is None:
            raise self.places.error(
                "start", expected="a time such as 2026-01-01T00:00:00Z", found=f'"{scenario.start}"'
            )
        horizon = self.duration("horizon", scenario.horizon)
        if not horizon:
            raise self.places.error("horizon", expected="more than 0s", found=f'"{scenario.horizon}"')
        every = self.duration("sampleEvery", scenario.sample_every) if scenario.sample_every else horizon / SAMPLES
        if every <= 0:
            raise self.places.error("sampleEvery", expected="more than 0s", found=f'"{scenario.sample_every}"')
        documents = self._cluster(scenario.cluster)
        work = WorkReader(self).read(scenario.work, horizon)
        changes = tuple(self._changes(scenario, horizon))
        faults = tuple(self._faults(scenario))
        timings = scenario.cluster.timings
        digest = self._digest({name: value for name, value in self._document.items() if name not in _BY_ITSELF})
        prepared = Prepared(
            name=scenario.name or self.places.file.stem,
            start=start,
            horizon=horizon,
            interval=self.duration("interval", scenario.interval),
            sample_every=every,
            seeds=self._seeds(scenario.seeds),
            documents=documents,
            work=work,
            policies=self._policies(scenario.policies),
            faults=faults,
            detection=self.duration("faults.detection", scenario.faults.detection),
            changes=changes,
            prices=tuple(self._prices(scenario.cluster)),
            timings=Timings(
                **{
                    name: self.distribution(f"cluster.timings.{name}", getattr(timings, name))
                    for name in ("pull", "start", "ready", "stop")
                }
            ),
            typical_pods=tuple(scenario.typical_pods),
            digest=digest,
        )
        self._rehearse(prepared, scenario.changes)
        return prepared

    def _typed(self) -> Scenario:
        for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
            found = self._document.get(field)
            if found != expected:
                raise self.places.error(field, expected=expected, found="none" if found is None else f'"{found}"')
        try:
            return convert(self._document, Scenario, str(self.places.file))
        except ConfigError as error:
            raise self.places.located(error) from None

    # Values.

    def duration(self, field: str, text: str) -> float:
        seconds = parse_duration(text)
        if seconds is None:
            raise self.places.error(field, expected=EXPECTED_DURATION, found=f'"{text}"')
        return seconds

    def moment(self, field: str, text: str, horizon: float) -> float:
        """A time since the start at which something is to happen: what the horizon cuts off, nobody would miss."""
        seconds = self.duration(field, text)
        if seconds > horizon:
            expected = f"a time within the horizon, {self._document['horizon']}"
            raise self.places.error(field, expected=expected, found=f'"{text}"')
        return seconds

    def distribution(self, field: str, text: str) -> Distribution:
        found = parse_distribution(text)
        if found is None:
            raise self.places.error(field, expected=EXPECTED_DISTRIBUTION, found=f'"{text}"')
        return found

    def positive(self, field: str, text: str) -> Distribution:
        """A distribution of times between things that happen again and again."""
        found = self.distribution(field, text)
        if found.first <= 0 and found.second <= 0:
            raise self.places.error(field, expected="more than 0s", found=f'"{text}"')
        return found

    def _seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        if not seeds:
            raise self.places.error("seeds", expected="at least one seed", found="none")
        for index, seed in enumerate(seeds):
            if not 0 <= seed <= LARGEST_SEED:
                raise self.places.error(f"seeds[{index}]", expected=f"from 0 to {LARGEST_SEED}", found=str(seed))
            if seed in seeds[:index]:
                raise self.places.error(f"seeds[{index}]", expected="each seed once", found=f"{seed} again")
        return tuple(seeds)

    # Files.

    def path(self, field: str, name: str) -> Path:
        """A file or folder that the scenario names."""
        path = self.folder / name
        if not name or not path.exists():
            said = f"no such file: {path}" if name else '""'
            raise self.places.error(field, expected="a file", found=said)
        return path

    def keep(self, field: str, name: str) -> Path:
        """A file that results depend on."""
        path = self.path(field, name)
        try:
            self._files[str(path)] = path.read_bytes()
        except OSError as error:
            found = f"{path}: {str(error.strerror).lower()}"
            raise self.places.error(field, expected="a readable file", found=found) from error
        return path

    def given(
        self, field: str, objects: Sequence[Document], files: Sequence[str], files_field: str = "manifests"
    ) -> tuple[Given, ...]:
        """The documents of some files and the `objects` that stand in the scenario itself."""
        found: list[Given] = []
        for index, name in enumerate(files):
            for document in read_documents([self.path(f"{field}.{files_field}[{index}]", name)]):
                mapping = as_mapping(document.source, document.place)
                head = {"apiVersion": document.api_version, "kind": document.kind}
                found.append(({**head, **mapping}, document.place))
        for index, mapping in enumerate(objects):
            name = f"{field}.objects[{index}]"
            if not isinstance(mapping.get("metadata"), dict):
                raise self.places.error(f"{name}.metadata", expected="metadata with a name", found="none")
            found.append((mapping, self.places.place(name)))
        self._files[f"{field}.objects"] = msgspec.json.encode([document for document, _ in found])
        return tuple(found)

    def trace(self, field: str, source: TraceSource, part: str) -> Path:
        """The path of a trace whose form is known, and has jobs or nodes."""
        form = TRACES.get(source.format)
        if form is None:
            expected = f"one of {', '.join(TRACES) or 'none'}{suggestion(source.format, TRACES)}"
            raise self.places.error(f"{field}.format", expected=expected, found=f'"{source.format}"')
        if getattr(form, part) is None:
            known = [name for name, found in TRACES.items() if getattr(found, part) is not None]
            raise self.places.error(
                f"{field}.format", expected=f"one of {', '.join(known)}", found=f'"{source.format}"'
            )
        return self.keep(f"{field}.path", source.path)

    def _digest(self, *parts: Any) -> str:
        found = hashlib.blake2b(digest_size=16)
        for part in (*parts, sorted(self._files.items())):
            found.update(msgspec.json.encode(part, order="deterministic"))
        return found.hexdigest()

    # Parts.

    def _cluster(self, source: ClusterSource) -> tuple[Given, ...]:
        documents = self.given("cluster", source.objects, source.manifests)
        if source.trace is not None:
            path = self.trace("cluster.trace", source.trace, "read_nodes")
            read = TRACES[source.trace.format].read_nodes
            assert read is not None
            documents += tuple((node, Place(str(path))) for node in read(path, source.trace.options))
        if not any(document.get("kind") in PLACES for document, _ in documents):
            raise self.places.error("cluster", expected="at least one Node", found="none")
        if source.decision_log:
            path = self.keep("cluster.decisionLog", source.decision_log)
            documents = bound_by_log(documents, self._files[str(path)], path)
        return documents

    def _prices(self, source: ClusterSource) -> Iterator[tuple[Chosen, float]]:
        for index, price in enumerate(source.prices):
            if not 0 <= price.per_hour < math.inf:
                field = f"cluster.prices[{index}].perHour"
                raise self.places.error(field, expected="at least 0", found=f"{price.per_hour:g}")
            yield Chosen(labels=price.nodes), price.per_hour

    def _faults(self, scenario: Scenario) -> Iterator[Failures | Reclaims]:
        for index, failures in enumerate(scenario.faults.node_failures):
            field = f"faults.nodeFailures[{index}]"
            every, repair = self.positive(f"{field}.every", failures.every), failures.repair
            yield Failures(Chosen(labels=failures.nodes), every, self.distribution(f"{field}.repair", repair))
        for index, reclaim in enumerate(scenario.faults.spot_reclaims):
            field = f"faults.spotReclaims[{index}]"
            yield Reclaims(
                Chosen(labels=reclaim.nodes),
                self.positive(f"{field}.every", reclaim.every),
                self.duration(f"{field}.notice", reclaim.notice),
                self.distribution(f"{field}.back", reclaim.back),
            )

    def _changes(self, scenario: Scenario, horizon: float) -> Iterator[Change]:
        last = 0.0
        for index, change in enumerate(scenario.changes):
            field = f"changes[{index}]"
            at = self.moment(f"{field}.at", change.at, horizon)
            if at < last:
                expected = f"a time that is not before that of changes[{index - 1}]"
                raise self.places.error(f"{field}.at", expected=expected, found=f'"{change.at}"')
            last = at
            yield Change(
                at,
                self.given(field, change.objects, change.apply, "apply"),
                _chosen(change.cordon),
                _chosen(change.uncordon),
                _chosen(change.fail),
                _chosen(change.repair),
            )

    def _policies(self, policies: Sequence[Policy]) -> dict[str, PolicyInput]:
        if not policies:
            raise self.places.error("policies", expected="at least one policy", found="none")
        found: dict[str, PolicyInput] = {}
        for index, policy in enumerate(policies):
            field = f"policies[{index}]"
            if not policy.name or policy.name in found:
                said = f'"{policy.name}" again' if policy.name else '""'
                raise self.places.error(f"{field}.name", expected="a name that no other policy has", found=said)
            found[policy.name] = self._policy(field, policy)
        return found

    def _policy(self, field: str, policy: Policy) -> PolicyInput:
        self._files = {}
        documents, settings, source = list(policy.settings), Settings(), f"{self.places.file}: {field}.settings"
        if policy.config:
            path = self.keep(f"{field}.config", policy.config)
            source = str(path)
            documents = [*load_documents(path), *documents]
        if documents:
            settings = parse_settings(documents, source)
        if settings.scheduler.extenders:
            raise ConfigError(source, "extenders", expected="none here (mooring run asks them)", found="some")
        self._check_scores(field, policy)
        plugins = [self.keep(f"{field}.plugins[{number}]", name) for number, name in enumerate(policy.plugins)]
        objects = self.given(field, policy.objects, policy.manifests)
        made = PolicyInput(
            name=policy.name,
            settings=settings,
            documents=objects,
            plugin_files=tuple(path.resolve() for path in plugins),
            scores=tuple(policy.scores),
            schedulers=tuple(policy.schedulers),
            interval=self.duration(f"{field}.interval", policy.interval) if policy.interval else None,
            source=source,
            digest=self._digest(msgspec.to_builtins(policy)),
        )
        made.assemble()  # so that what is wrong with it is said now
        return made

    def _rehearse(self, prepared: Prepared, changes: Sequence[PlannedChange]) -> None:
        """Refuse objects that no run could put, and nodes that are named and are there under no policy."""
        policies = list(prepared.policies.values())
        alike = [policy for policy in policies if not policy.documents][:1]
        found = [rehearse(prepared, policy) for policy in (*alike, *(each for each in policies if each.documents))]
        missing = set.intersection(*(each.missing for each in found))
        if not missing:
            return
        nodes = set().union(*(each.nodes for each in found))
        for index, change in enumerate(changes):
            for act in ("cordon", "uncordon", "fail", "repair"):
                choice: NodeChoice | None = getattr(change, act)
                for number, name in enumerate(choice.names if choice is not None else ()):
                    if (index, name) in missing:
                        field = f"changes[{index}].{act}.names[{number}]"
                        expected = f"a node that is there by then{suggestion(name, sorted(nodes - {name}))}"
                        raise self.places.error(field, expected=expected, found=f'"{name}"')

    def _check_scores(self, field: str, policy: Policy) -> None:
        if policy.plugins:
            return  # theirs count as well, and whoever assembles the policy knows them all
        classes = (*(plugin for plugin, _ in DEFAULT_PLUGINS), *OPTIONAL_PLUGINS)
        known = [plugin.__name__ for plugin in classes if issubclass(plugin, ScoreAnswers)]
        for index, name in enumerate(policy.scores):
            if name not in known:
                expected = f"a Score plugin{suggestion(name, known)}: one of {', '.join(known)}"
                raise self.places.error(f"{field}.scores[{index}]", expected=expected, found=f'"{name}"')


_BY_ITSELF = ("policies", "seeds")
"""What runs of a scenario may differ in: it has no part in its digest."""


def _chosen(choice: NodeChoice | None) -> Chosen | None:
    return None if choice is None else Chosen(frozenset(choice.names), choice.labels)


def choose_policies(prepared: Prepared, names: Sequence[str]) -> list[str]:
    """The policies that were asked for, all if none was."""
    for name in names:
        if name not in prepared.policies:
            known = ", ".join(prepared.policies)
            raise InputError(f'--policy: expected one of {known}, found "{name}"')
    return list(dict.fromkeys(names)) or list(prepared.policies)
