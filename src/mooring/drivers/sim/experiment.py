"""Many runs, policies by seeds, on all cores or on a cluster engine that people run already, by joblib's backends.

A run that fails does not stop the others. Runs that are done are kept in a folder by what they depend on, so that the
same command, given again, takes up what is missing.
"""

import hashlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mooring.drivers.sim.runs import Prepared, simulate
from mooring.errors import InputError, MooringError
from mooring.observe.progress import Progress
from mooring.report.simulation.files import dump_run, load_run
from mooring.report.simulation.results import Run
from mooring.report.simulation.summary import Failed

KEPT = "runs"
"""The folder within that of the results."""
ANSWER_SECONDS = 10.0
"""How long a cluster may take to answer at all."""


@dataclass(frozen=True)
class Where:
    """Where runs are run."""

    jobs: int = -1
    """Processes; -1: one a core."""
    backend: str = "loky"
    scheduler: str = ""
    """The address of Dask's scheduler, or of Ray's cluster."""


def run_all(
    prepared: Prepared,
    policies: Sequence[str],
    seeds: Sequence[int],
    where: Where,
    kept: Path | None,
    progress: Progress,
) -> tuple[list[Run], list[Failed]]:
    """All runs in the order of policies, then seeds; those that failed apart."""
    wanted = [(policy, seed) for policy in policies for seed in seeds]
    found: dict[tuple[str, int], Run | Failed] = {}
    for one in wanted:
        known = _known(prepared, *one, kept)
        if known is not None:
            found[one] = known
    missing = [one for one in wanted if one not in found]
    progress.phase("simulating", len(wanted))
    if len(missing) == 1 and where.backend == "loky":
        found[missing[0]] = _settle(prepared, missing[0], run_one(prepared, *missing[0], progress), kept)
    elif missing:
        for one, outcome in _run_each(prepared, missing, where):
            found[one] = _settle(prepared, one, outcome, kept)
            progress.reached(len(found))
    results = [found[one] for one in wanted]
    return [each for each in results if isinstance(each, Run)], [each for each in results if isinstance(each, Failed)]


def run_one(prepared: Prepared, policy: str, seed: int, progress: Progress | None = None) -> bytes | Failed:
    """One run, as bytes; whatever stops it is told, not raised: others go on."""
    try:
        return dump_run(simulate(prepared, policy, seed, progress))
    except MooringError as error:
        return Failed(policy, seed, " ".join(str(error).split()))
    except Exception as error:  # a fault of ours in one run must not cost the others
        return Failed(policy, seed, " ".join(f"{type(error).__name__}: {error}".split()))


def _settle(prepared: Prepared, one: tuple[str, int], outcome: bytes | Failed, kept: Path | None) -> Run | Failed:
    if isinstance(outcome, Failed):
        return outcome
    if kept is not None:
        path = _path(prepared, *one, kept)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".part")
        written.write_bytes(outcome)
        written.replace(path)  # it is there as a whole or not at all
    return load_run(outcome)


def _run_each(
    prepared: Prepared, wanted: Sequence[tuple[str, int]], where: Where
) -> Iterator[tuple[tuple[str, int], bytes | Failed]]:
    """Run them side by side; outcomes come in the order of what is wanted."""
    from joblib import Parallel, delayed, parallel_config

    with ExitStack() as opened:
        tasks = (delayed(run_one)(prepared, policy, seed) for policy, seed in wanted)
        opened.enter_context(parallel_config(**_backend(where, opened)))
        # Ray's backend hands over all of them at the end; the others, each as soon as it is there.
        outcomes = Parallel(n_jobs=where.jobs, return_as="list" if where.backend == "ray" else "generator")(tasks)
        yield from zip(wanted, outcomes, strict=True)


def _backend(where: Where, opened: ExitStack) -> dict[str, Any]:
    match where.backend:
        case "dask":
            return _dask(where, opened)
        case "ray":
            return _ray(where, opened)
    return {"backend": where.backend}


def _dask(where: Where, opened: ExitStack) -> dict[str, Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise _not_installed("dask", "distributed") from error
    connect: Any = Client
    try:
        client = opened.enter_context(connect(where.scheduler, set_as_default=False))
    except OSError as error:
        raise InputError(f"--scheduler: expected a Dask scheduler at {where.scheduler}, found none") from error
    return {"backend": "dask", "client": client}


def _ray(where: Where, opened: ExitStack) -> dict[str, Any]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise _not_installed("ray", "ray") from error
    expected = f"--scheduler: expected a Ray cluster at {where.scheduler} that lets us in"
    host, _, port = where.scheduler.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InputError("--scheduler: expected HOST:PORT or ray://HOST:PORT, found " + where.scheduler)
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()  # Ray itself tries for many minutes
        opened.enter_context(ray.init(where.scheduler, log_to_driver=False))
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{expected}, found {' '.join(str(error).split())}") from error
    register_ray()
    return {"backend": "ray"}


def _not_installed(backend: str, package: str) -> InputError:
    return InputError(
        f"--backend {backend}: expected the package {package} (pip install 'mooring[{backend}]'), found none"
    )


def _known(prepared: Prepared, policy: str, seed: int, kept: Path | None) -> Run | None:
    if kept is None:
        return None
    try:
        return load_run(_path(prepared, policy, seed, kept).read_bytes())
    except FileNotFoundError:
        return None


def _path(prepared: Prepared, policy: str, seed: int, kept: Path) -> Path:
    """Where a run is kept: its name says what it depends on."""
    words = (prepared.digest, prepared.policies[policy].digest, policy, str(seed), code_version())
    return kept / KEPT / f"{hashlib.blake2b(repr(words).encode(), digest_size=12).hexdigest()}.run"


@cache
def code_version() -> str:
    """Which code decides: a version that is being worked on is another after every change."""
    import mooring

    found = hashlib.blake2b(digest_size=8)
    folder = Path(mooring.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()
