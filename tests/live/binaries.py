"""A real control plane's programs, built from their Go modules and kept outside the project.

    python tests/live/binaries.py kube-apiserver etcd     build these (all of them without a name)

They go to `$MOORING_BINARIES`, or the user's cache. What is there already is not built again.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

VERSION = "v1.37.1"
HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
BINARIES = Path(os.environ.get("MOORING_BINARIES") or CACHE / "mooring" / "live" / VERSION)

PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "e2e.test": "k8s.io/kubernetes/test/e2e",
}


def binary(name: str) -> Path | None:
    """Where a program is, if it has been built."""
    path = BINARIES / name
    return path if path.exists() else None


def build(name: str) -> Path:
    """Build one program unless it is there; the file appears only when it is whole."""
    path = BINARIES / name
    if path.exists():
        return path
    BINARIES.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    verb = ["test", "-c"] if name == "e2e.test" else ["build"]
    command = ["go", *verb, "-trimpath", "-ldflags", _link_flags(), "-o", str(unfinished), PACKAGES[name]]
    # etcd has a module of its own, since its requirements are not Kubernetes' own.
    module = HERE / "etcd" if name == "etcd" else HERE
    began = time.monotonic()
    print(f"building {name} (minutes where nothing is cached)", flush=True)
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false -mod=mod"}
    subprocess.run(command, cwd=module, check=True, env=environment)
    unfinished.rename(path)
    print(f"built {name} in {time.monotonic() - began:.0f} s", flush=True)
    return path


def _link_flags() -> str:
    # Tests compare the version of the server with that of their client.
    facts = {
        "gitVersion": VERSION,
        "gitMajor": "1",
        "gitMinor": "37",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {package}.{key}={value}" for package in packages for key, value in facts.items())])


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in PACKAGES]
    if unknown:
        sys.exit(f"unknown program {unknown[0]!r}: expected one of {', '.join(PACKAGES)}")
    for each in sys.argv[1:] or PACKAGES:
        build(each)
