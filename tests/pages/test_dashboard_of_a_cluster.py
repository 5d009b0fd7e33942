"""The dashboard over a cluster that changes: open pages follow by themselves."""

import base64
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from ssl import create_default_context

import pytest
import yaml
from playwright.sync_api import Browser
from serving import dashboard


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a cluster with three nodes, and nothing that schedules it."""
    path = tmp_path / "kubeconfig"
    options = ["--in-memory", "--port", "0", "--nodes", "3", "--no-scheduler", "--kubeconfig", str(path)]
    process = subprocess.Popen([sys.executable, "-m", "mooring", "up", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "is up at" in process.stdout.readline()
        yield path
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def create_pod(kubeconfig: Path, name: str) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, token = config["clusters"][0]["cluster"], config["users"][1]["user"]["token"]
    authority = kubeconfig.parent / "ca.crt"
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    request = urllib.request.Request(
        f"{cluster['server']}/api/v1/namespaces/default/pods",
        json.dumps(pod).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=create_default_context(cafile=str(authority))) as answer:
        assert answer.status == 201


def test_an_open_page_follows_the_cluster(kubeconfig: Path, browser: Browser) -> None:
    with dashboard("--kubeconfig", kubeconfig, "--every", "0.2") as link:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{link}/pods")
        assert "No pod is so" in page.inner_text("main")

        create_pod(kubeconfig, "new")

        page.wait_for_selector("text=default/new")
        page.goto(f"{link}/nodes")
        page.wait_for_selector("#node-map[data-drawn='3']")
        assert complaints == []
        page.close()
