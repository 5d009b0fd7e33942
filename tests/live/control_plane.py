"""A real control plane on this machine: etcd, kube-apiserver and what else is asked for, on 127.0.0.1 only.

python tests/live/control_plane.py --dir /tmp/cp kube-controller-manager kwok     run one until interrupted
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from binaries import binary

ADMIN, NOBODY = "mooring-admin-token", "mooring-nobody-token"
READY_SECONDS = 120.0
END_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""A test that is killed takes its programs along, where there is such a command."""
GATES = (
    "GenericWorkload,WorkloadWithJob,TopologyAwareWorkloadScheduling,DRAResourcePoolStatus,"
    "DRAWorkloadResourceClaims,DRAPartitionableDevicesType,DRADeviceCompatibilityGroups,StatefulSetRecreateStrategy"
)
VERSIONS = (
    "scheduling.k8s.io/v1beta1,scheduling.k8s.io/v1alpha3,"
    "resource.k8s.io/v1alpha3,resource.k8s.io/v1beta1,resource.k8s.io/v1beta2"
)


def etcd() -> Path | None:
    """The etcd to use: the one that was built, or the machine's own."""
    found = binary("etcd") or os.environ.get("ETCD") or shutil.which("etcd")
    return Path(found) if found else None


def is_available() -> bool:
    return binary("kube-apiserver") is not None and etcd() is not None


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Program:
    """A program that runs in the background, with its output in a file."""

    def __init__(
        self, directory: Path, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.log = name, directory / f"{name}.log"
        self._environment = os.environ | (environment or {})
        self._command = [str(each) for each in command]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = [*END_WITH_PARENT, *self._command]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=self._environment
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_until_it_says(self, text: str, seconds: float = 60.0) -> None:
        until(lambda: text in self.log.read_text(errors="replace"), seconds, self.tail)

    def send(self, number: int) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(number)

    def stop(self, seconds: float = 15.0) -> int:
        """Ask it to end; make it, if it does not."""
        if self._process is None:
            return 0
        self.send(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def cpu_seconds(self) -> float:
        """What it has used so far, of its own and of its children that are over."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class ControlPlane:
    """etcd and kube-apiserver, with kubeconfigs for an administrator and for a user without any rights."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        api_flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is for etcd and the API server."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = port or free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = self._kubeconfig("admin.kubeconfig", ADMIN)
        self.nobody = self._kubeconfig("nobody.kubeconfig", NOBODY)
        self.programs: dict[str, Program] = {}
        client, peer = free_port(), free_port()
        self._etcd_url = f"http://127.0.0.1:{client}"
        found = etcd()
        assert found is not None
        self._servers_environment = environment
        self._add(
            "etcd",
            found,
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self._add("kube-apiserver", binary("kube-apiserver") or "kube-apiserver", *self._api_flags(), *api_flags)

    def _add(self, name: str, *command: str | Path) -> Program:
        environment = self._servers_environment if name in ("etcd", "kube-apiserver") else None
        self.programs[name] = Program(self.directory, name, command, environment)
        return self.programs[name]

    def _api_flags(self) -> list[str]:
        key = self.directory / "service-account.key"
        if not key.exists():
            subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{ADMIN},admin,admin,"system:masters"\n{NOBODY},nobody,nobody,""\n')
        return [
            f"--etcd-servers={self._etcd_url}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.directory / 'certs'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--disable-admission-plugins=TaintNodesByCondition",
            "--service-cluster-ip-range=127.10.0.0/16",
            "--max-requests-inflight=800",
            "--max-mutating-requests-inflight=400",
            f"--feature-gates={','.join(f'{gate}=true' for gate in GATES.split(','))}",
            f"--runtime-config={','.join(f'{version}=true' for version in VERSIONS.split(','))}",
        ]

    def _kubeconfig(self, name: str, token: str) -> Path:
        path = self.directory / name
        cluster: dict[str, Any] = {
            "server": self.server,
            "certificate-authority": str(self.directory / "certs" / "apiserver.crt"),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "live",
            "clusters": [{"name": "live", "cluster": cluster}],
            "users": [{"name": "live", "user": {"token": token}}],
            "contexts": [{"name": "live", "context": {"cluster": "live", "user": "live"}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def __enter__(self) -> "ControlPlane":
        for program in self.programs.values():
            program.start()
        try:
            self.wait_until_ready()
            self._give_account()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for program in reversed(self.programs.values()):
            program.stop()

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            for program in self.programs.values():
                assert program.is_running, f"{program.name} ended:\n{program.tail()}"
            return is_ready(self.server)

        until(ready, READY_SECONDS, lambda: self.programs["kube-apiserver"].tail())

    def _give_account(self) -> None:
        """Create the account of pods in the default namespace, which kube-controller-manager creates where it runs."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
        url = f"{self.server}/api/v1/namespaces/default/serviceaccounts"
        request = urllib.request.Request(url, json.dumps(account).encode(), headers)

        def is_there() -> bool:
            try:
                return bool(urllib.request.urlopen(request, context=_own_certificate(), timeout=5).status == 201)
            except urllib.error.HTTPError as error:
                return error.code == 409  # not 404: the namespace follows the server's start by a moment

        until(is_there, READY_SECONDS)

    def start(self, name: str, *flags: str) -> Program:
        """Start a further program of Kubernetes beside these."""
        path = binary(name)
        assert path is not None, f"{name} has not been built"
        program = self._add(name, path, f"--kubeconfig={self.kubeconfig}", *FLAGS.get(name, ()), *flags)
        if name == "kwok":
            program._command += [f"--config={path}" for path in kwok_stages()]
        if name == "kube-controller-manager":
            key = self.directory / "service-account.key"
            certificate = self.directory / "certs" / "apiserver.crt"
            program._command += [f"--service-account-private-key-file={key}", f"--root-ca-file={certificate}"]
            program._command += [f"--feature-gates={','.join(f'{gate}=true' for gate in GATES.split(','))}"]
        program.start()
        return program


class EmbeddedPlane:
    """`mooring up` without nodes and without a scheduler: the same stories, everywhere."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.port = directory, free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = directory / "embedded.kubeconfig"
        command = [sys.executable, "-m", "mooring", "up", "--no-scheduler", "--nodes=0", "--in-memory"]
        self.program = Program(
            directory, "mooring-up", [*command, f"--port={self.port}", f"--kubeconfig={self.kubeconfig}"]
        )

    def __enter__(self) -> "EmbeddedPlane":
        self.program.start()
        until(lambda: "The cluster is up" in self.program.tail(), READY_SECONDS, self.program.tail)
        return self

    def __exit__(self, *raised: object) -> None:
        self.program.stop()


FLAGS = {
    "kube-scheduler": (
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
    ),
    "kube-controller-manager": (
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        "--controllers=*,bootstrapsigner,tokencleaner",
        "--enable-hostpath-provisioner=true",
        "--node-monitor-grace-period=300s",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ),
    "kwok": (
        "--manage-all-nodes=true",
        "--cidr=127.20.0.0/16",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=40",
    ),
}


def kwok_stages() -> list[Path]:
    """What kwok does to nodes and pods, as files of its Go module."""
    modules = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
    found = sorted((modules / "sigs.k8s.io").glob("kwok@*/kustomize/stage"))
    assert found, "the module of kwok is not there: go mod download sigs.k8s.io/kwok"
    parts = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    return [
        path
        for part in parts
        for path in sorted((found[-1] / part).glob("*.yaml"))
        if path.name != "kustomization.yaml"
    ]


def _own_certificate() -> ssl.SSLContext:
    """For a server that made its certificate itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_ready(server: str) -> bool:
    """Whether an API server is ready."""
    request = urllib.request.Request(f"{server}/readyz", headers={"Authorization": f"Bearer {ADMIN}"})
    try:
        with urllib.request.urlopen(request, timeout=2, context=_own_certificate()) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def until(done: Callable[[], bool], seconds: float, why: Callable[[], str] = lambda: "") -> None:
    """Wait for something; fail with what is known if it does not come."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:g} s\n{why()}"
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--port", type=int)
    parser.add_argument("--nodes", type=int, default=0, help="simulated nodes to create")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    with ControlPlane(options.dir, port=options.port) as plane:
        for name in options.programs:
            plane.start(name)
        print(f"KUBECONFIG={plane.kubeconfig}", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
