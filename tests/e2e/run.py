"""Kubernetes' own end-to-end tests against the embedded control plane, or any other by its kubeconfig.

    python tests/e2e/run.py                         all that are asked for, against a `mooring up` of its own
    python tests/e2e/run.py --only 'Watchers|Job'   names that match a regular expression
    python tests/e2e/run.py --kubeconfig K          against a server that runs already
    python tests/e2e/run.py --random 7              in a random order, the same for the same seed
    python tests/e2e/run.py --real                  scheduling and devices, on a real control plane with simulated nodes
                                                    (kwok) and `mooring run` in kube-scheduler's place

`upstream-tests.txt` names tests that pass on a real control plane with simulated nodes: a failure here is a difference
from Kubernetes. Prints one line per failure and a table by group; exits with 1 if fewer than 95 % pass.
"""

import argparse
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "live"))

from binaries import build  # noqa: E402
from control_plane import ControlPlane, until  # noqa: E402
from kube import Kube, node  # noqa: E402

# What the embedded control plane answers for, by the beginning of a test's name after its special interest group.
ASKED = re.compile(
    r"^\[sig-apps\]|^\[sig-scheduling\]|^\[sig-cli\]"
    r"|^\[sig-api-machinery\] (API Streaming|AggregatedDiscovery|CustomResourceDefinition |Discovery|FieldValidation"
    r"|Garbage collector|Generated clientset|Namespaces|OrderedNamespaceDeletion|ResourceQuota|Server request timeout"
    r"|ServerSideApply|Servers with support|Watchers|client-go)"
    r"|^\[sig-node\] (ConfigMap|Lease|NoExecuteTaintManager|Node Lifecycle|NodeLease|PodTemplates|Pods|RuntimeClass"
    r"|Secrets|\[DRA\])"
    r"|^\[sig-instrumentation\] Events|^\[sig-storage\] (PV Protection|PVC Protection|Secrets)"
    r"|^\[sig-auth\] (SelfSubjectReview|ServiceAccounts|SubjectReview)|^\[sig-architecture\]"
)
# A few seconds each, and together something of everything.
QUICK = re.compile(
    r"Watchers should be able|Table transformation should return pod|AggregatedDiscovery should support aggregated"
    r"|ServerSideApply should (ignore|remove)|ConfigMap should run|Lease lease API|Events should manage"
    r"|Pods should run through|ReplicaSet .*replica set|SchedulerPredicates .*validates that NodeSelector"
    r"|Job should run a job to completion when tasks succeed|PodTemplates should run|SubjectReview should"
)
# What is a scheduler's to answer for.
SCHEDULING = re.compile(r"^\[sig-scheduling\]|^\[sig-node\] \[DRA\] control plane")
GATED = "(feature gates on)"
LABELS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok"}


class Test(NamedTuple):
    name: str
    seconds: float
    gated: bool

    @property
    def group(self) -> str:
        return self.name[1 : self.name.index("]")]

    @property
    def serial(self) -> bool:
        return "[Serial]" in self.name


class Result(NamedTuple):
    test: Test
    passed: bool
    why: str


def read_tests(path: Path) -> list[Test]:
    """The names of a list, with the seconds that each took upstream."""
    tests, gated = [], False
    for line in path.read_text().splitlines():
        if line.startswith("# sig-"):
            gated = GATED in line
        elif line.startswith("["):
            name, seconds = line.split("\t")
            tests.append(Test(name, float(seconds), gated))
    return tests


def run(tests: list[Test], kubeconfig: Path, parallel: int, limit: float, seed: int | None = None) -> list[Result]:
    """Those that must run alone after the others, which share the machine `parallel` at a time. With a seed, which
    tests share a process and their order in it are random."""
    serial = [test for test in tests if test.serial]
    others = sorted((test for test in tests if not test.serial), key=lambda test: -test.seconds)
    if seed is not None:
        random.Random(seed).shuffle(others)
    shares = [share for n in range(parallel) if (share := others[n::parallel])]

    def run_one(share: list[Test]) -> list[Result]:
        return _run_share(share, kubeconfig, limit, seed)

    with ThreadPoolExecutor(max_workers=parallel) as pool:
        results = [result for part in pool.map(run_one, shares) for result in part]
    return results + run_one(serial)


def _run_share(tests: list[Test], kubeconfig: Path, limit: float, seed: int | None) -> list[Result]:
    if not tests:
        return []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output.txt")
        command = [
            str(build("e2e.test")),
            f"--kubeconfig={kubeconfig}",
            "--provider=skeleton",
            "--num-nodes=5",
            "--allowed-not-ready-nodes=0",
            "--minStartupPods=0",
            "--node-os-distro=custom",
            f"--kubectl-path={build('kubectl')}",
            "--kube-api-content-type=application/json",
            "--dump-logs-on-failure=false",
            "--ginkgo.no-color",
            f"--ginkgo.timeout={limit:.0f}s",
            f"--report-dir={folder}",
            "--report-prefix=run-",
            *([] if seed is None else ["--ginkgo.randomize-all", f"--ginkgo.seed={seed}"]),
            "--ginkgo.focus=" + "|".join(re.escape(test.name).replace(r"\ ", " ") + "$" for test in tests),
        ]
        with output.open("wb") as file:
            subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
        reports = sorted(Path(folder).glob("junit_*.xml"))
        if not reports:
            return [Result(test, False, f"no report: {output.read_text()[-300:].strip()}") for test in tests]
        return _read_report(reports[0], tests)


def _read_report(report: Path, tests: list[Test]) -> list[Result]:
    by_name: dict[str, ElementTree.Element] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        by_name[case.get("name", "").removeprefix("[It] ")] = case
    results = []
    for test in tests:
        # The report appends the test's labels to its name.
        cases = [case for name, case in by_name.items() if name.startswith(test.name)]
        if not cases:
            results.append(Result(test, False, "not in the report"))
            continue
        case = cases[0]
        said = next((part.get("message") or part.text or "" for part in case if part.tag != "system-err"), "")
        passed = case.get("status") == "passed"
        results.append(Result(test, passed, "" if passed else f"{case.get('status')}: {' '.join(said.split())[:400]}"))
    return results


@contextlib.contextmanager
def embedded_control_plane() -> Iterator[Path]:
    """A `mooring up` of its own on a free port, gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        log = Path(folder, "up.log").open("w+")  # noqa: SIM115
        up = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mooring",
                "up",
                "--in-memory",
                "--port=0",
                "--nodes=5",
                f"--filename={HERE / 'kube-system.yaml'}",
                f"--kubeconfig={kubeconfig}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + 60
            while not kubeconfig.exists() or not _ready(kubeconfig):
                if up.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    sys.exit(f"mooring up did not get ready:\n{log.read()}")
                time.sleep(0.2)
            yield kubeconfig
        finally:
            up.terminate()
            up.wait(timeout=30)
            log.close()


@contextlib.contextmanager
def real_control_plane() -> Iterator[Path]:
    """kube-apiserver, kube-controller-manager and five nodes of kwok's, with `mooring run` as the default scheduler."""
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kubectl", "e2e.test"):
        build(name)
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder, "plane")) as plane,
        Kube(plane.kubeconfig, Path(folder)) as kube,
    ):
        for number in range(5):
            made = node(f"node-{number}", labels={**LABELS, "topology.kubernetes.io/zone": f"zone-{number % 3}"})
            for amounts in (made["status"]["allocatable"], made["status"]["capacity"]):
                amounts["ephemeral-storage"] = "200Gi"
            # An address of its own: ports of 127.0.0.1 and of the node are not the same.
            made["status"]["addresses"] = [
                {"type": "InternalIP", "address": f"127.1.0.{number + 1}"},
                {"type": "Hostname", "address": f"node-{number}"},
            ]
            kube.create(made)
        plane.start("kube-controller-manager")
        plane.start("kwok")
        scheduler = kube.run(leads=True)
        applied = [str(build("kubectl")), f"--kubeconfig={plane.kubeconfig}", "apply", "-f"]
        subprocess.run([*applied, str(HERE / "kube-system.yaml")], check=True, capture_output=True)
        until(lambda: _running(kube) >= 15, 120, scheduler.tail)
        yield plane.kubeconfig
        assert scheduler.is_running, scheduler.tail()


def _running(kube: Kube) -> int:
    pods = kube.objects("/api/v1/namespaces/kube-system/pods")
    return sum(1 for found in pods if found["status"].get("phase") == "Running")


def _ready(kubeconfig: Path) -> bool:
    asked = [str(build("kubectl")), f"--kubeconfig={kubeconfig}", "get", "--raw", "/readyz"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def show(results: list[Result]) -> float:
    """Print what failed and why, then a table by group; the share that passed."""
    for result in sorted(results, key=lambda result: result.test.name):
        if not result.passed:
            print(f"FAILED {result.test.name}\n       {result.why}")
    asked = Counter(result.test.group for result in results)
    passed = Counter(result.test.group for result in results if result.passed)
    print(f"\n{'group':<22}{'passed':>8}{'asked':>8}")
    for group in sorted(asked):
        print(f"{group:<22}{passed[group]:>8}{asked[group]:>8}")
    total = sum(passed.values())
    print(f"\n{total} passed, {len(results) - total} failed")
    return total / len(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, help="a server that runs already")
    parser.add_argument("--real", action="store_true", help="a real control plane, Mooring as its scheduler")
    parser.add_argument("--only", default="", help="a regular expression over names")
    parser.add_argument("--skip", default="", help="a regular expression over names")
    parser.add_argument("--quick", action="store_true", help="a minute's worth of everything")
    parser.add_argument("--gates", action="store_true", help="also those that need feature gates")
    parser.add_argument("--parallel", type=int, default=max(2, (os.cpu_count() or 2)), help="tests at a time")
    parser.add_argument("--limit", type=float, default=1500, help="seconds for all tests of one process")
    parser.add_argument("--random", type=int, metavar="SEED", help="in a random order, the same for the same seed")
    parser.add_argument("--list", action="store_true", help="only name them")
    given = parser.parse_args()
    tests = [
        test
        for test in read_tests(HERE / "upstream-tests.txt")
        if (SCHEDULING if given.real else ASKED).search(test.name)
        and (given.gates or given.real or not test.gated)
        and re.search(given.only, test.name)
        and not (given.skip and re.search(given.skip, test.name))
        and (not given.quick or QUICK.search(test.name))
    ]
    if given.list or not tests:
        print("\n".join(test.name for test in tests) or "no test has such a name")
        sys.exit(0 if tests else 2)
    with contextlib.ExitStack() as stack:
        own = real_control_plane if given.real else embedded_control_plane
        kubeconfig = given.kubeconfig or stack.enter_context(own())
        results = run(tests, kubeconfig, given.parallel, given.limit, given.random)
    sys.exit(0 if show(results) >= (1.0 if given.real else 0.95) else 1)


if __name__ == "__main__":
    main()
