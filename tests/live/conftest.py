"""What tests of the live driver share: a control plane, and a cluster on it.

Stories that ask for `cluster` run on the embedded control plane everywhere, and on a real one where its programs have
been built (`make test-live`). Those that ask for `plane` or `kube` run on a real one only.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import ControlPlane, EmbeddedPlane, is_available
from kube import Kube


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not is_available():
        pytest.skip("kube-apiserver and etcd have not been built: python tests/live/binaries.py")
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPlane]:
    with EmbeddedPlane(tmp_path_factory.mktemp("embedded")) as plane:
        yield plane


@pytest.fixture
def kube(plane: ControlPlane, tmp_path: Path) -> Iterator[Kube]:
    """The cluster without nodes, without anything in the default namespace, and without custom kinds; a scheduler is
    yet to be started."""
    with Kube(plane.kubeconfig, tmp_path) as kube:
        kube.clean()
        kube.remove_custom_kinds()
        yield kube


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.live)])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kube]:
    """The same, on the embedded control plane and on a real one in turn."""
    plane = request.getfixturevalue("plane" if request.param == "real" else "embedded")
    with Kube(plane.kubeconfig, tmp_path) as kube:
        kube.clean()
        yield kube
