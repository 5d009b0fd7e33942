"""`mooring up` as a command: what it says, what it refuses, how it ends."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

NO_SCHEDULER = ("--no-scheduler", "--port", "0")


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "mooring", "up", *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until_up(server: "subprocess.Popen[str]") -> list[str]:
    assert server.stdout is not None
    lines = []
    for line in server.stdout:
        lines.append(line.rstrip())
        if line.startswith("Ctrl-C"):
            return lines
    assert server.stderr is not None
    raise AssertionError(server.stderr.read())


def refused(folder: Path, *options: str) -> tuple[int, str]:
    server = start(folder, *options)
    said = server.communicate(timeout=60)[1]
    return server.returncode, said.strip()


def configmaps(path: Path) -> set[str]:
    """The names of those that were kept, but for the one that every namespace has."""
    if not path.exists():
        return set()
    connection = sqlite3.connect(path)
    found = {name for (name,) in connection.execute("SELECT name FROM objects WHERE resource = 'configmaps'")}
    connection.close()
    return found - {"kube-root-ca.crt"}


def test_it_says_where_it_is_and_ends_with_a_signal(tmp_path: Path) -> None:
    server = start(tmp_path, *NO_SCHEDULER, "--nodes", "2")
    lines = wait_until_up(server)
    config = yaml.safe_load((tmp_path / "mooring.kubeconfig").read_text())
    server.send_signal(signal.SIGINT)
    remarks = server.communicate(timeout=30)[1]

    assert (server.returncode, remarks) == (0, "")
    assert lines[0] == f"The cluster is up at {config['clusters'][0]['cluster']['server']} (kept in mooring.db)."
    assert lines[2] == f"  export KUBECONFIG={tmp_path.resolve() / 'mooring.kubeconfig'}"
    assert os.stat(tmp_path / "mooring.kubeconfig").st_mode & 0o077 == 0
    assert (tmp_path / "mooring.db").exists()


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    manifest = tmp_path / "start.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: new}\ndata: {x: '1'}\n")
    for options in (("-f", "start.yaml"), ()):
        server = start(tmp_path, *NO_SCHEDULER, "--nodes", "1", "--data", "kept.db", *options)
        wait_until_up(server)
        server.terminate()
        server.communicate(timeout=30)
        assert server.returncode == 0

    assert "kept" in configmaps(tmp_path / "kept.db")


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = refused(tmp_path, "--no-scheduler", "--port", str(port))

    assert (code, (tmp_path / "mooring.db").exists()) == (2, False)
    assert said == f"error: --port: expected a port that is free at 127.0.0.1, found {port} (address already in use)"


def test_a_manifest_that_the_api_refuses_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: Bad_Name}\nspec: {ports: []}\n")
    code, said = refused(tmp_path, "--in-memory", *NO_SCHEDULER, "-f", "bad.yaml")

    assert code == 2
    assert said.startswith("error: bad.yaml: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: lots}}",
            "document 2 (Node): expected an object",
        ),
        ("kind: ConfigMap\nmetadata: {name: [x]}", "document 2 (ConfigMap): expected an object"),
        ("kind: ConfigMap\nmetadata: {name: x, namespace: 5}", "document 2 (ConfigMap): expected an object"),
        ("kind: ConfigMap\nmetadata: {name: x, namespace: Not_One}", "document 2 (ConfigMap): expected an object"),
        ("kind: Pod\nmetadata: {name: x}\nspec: {containers: 5}", "document 2 (Pod): expected an object"),
        ("kind: Pod\nmetadata: 5", "document 2 (Pod): expected an object"),
    ],
)
def test_of_manifests_that_cannot_be_used_nothing_is_kept(tmp_path: Path, text: str, said: str) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\napiVersion: v1\n"
    (tmp_path / "bad.yaml").write_text(good + text)
    code, found = refused(tmp_path, *NO_SCHEDULER, "--data", "kept.db", "-f", "bad.yaml")

    assert (code, len(found.splitlines())) == (2, 1)
    assert found.startswith(f"error: bad.yaml: {said}")
    assert configmaps(tmp_path / "kept.db") == set()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "error: settings.yaml: profiles: expected array | null, found int"),
        (("--no-scheduler",), "error: --config: expected a scheduler to configure, found --no-scheduler"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    (tmp_path / "settings.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: 5\n"
    )
    found = refused(tmp_path, "--port", "0", "--config", "settings.yaml", *options)

    assert found == (2, said)
    assert not (tmp_path / "mooring.db").exists()


def test_a_user_is_named_once(tmp_path: Path) -> None:
    assert refused(tmp_path, "--as", "alice", "--as", "alice=team") == (
        2,
        'error: --as: expected the name of another user, of at most 64 letters, found "alice=team"',
    )


def test_in_memory_and_a_file_exclude_one_another(tmp_path: Path) -> None:
    assert refused(tmp_path, "--in-memory", "--data", "x.db") == (
        2,
        "error: --in-memory: expected --in-memory or --data, not both, found --data x.db",
    )


def test_the_scheduler_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    server = start(tmp_path, "--in-memory", "--port", "0", "--nodes", "1")
    wait_until_up(server)
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    if not children.exists():
        server.terminate()
        server.communicate()
        return
    (scheduler,) = children.read_text().split()
    server.kill()
    server.communicate()

    until = time.monotonic() + 30
    while Path(f"/proc/{scheduler}").exists() and "\nState:\tZ" not in Path(f"/proc/{scheduler}/status").read_text():
        assert time.monotonic() < until, "the scheduler goes on"
        time.sleep(0.1)
