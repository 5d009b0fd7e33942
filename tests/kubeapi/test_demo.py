"""`make demo` does what it says, on a control plane of its own."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

kubernetes: Any = pytest.importorskip("kubernetes")
DEMO = Path(__file__).parents[2] / "examples" / "demo" / "demo.py"


def test_two_teams_share_gpus_a_gang_starts_whole_and_the_cluster_stays_up_if_asked() -> None:
    demo = subprocess.Popen([sys.executable, str(DEMO), "--serve"], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    lines = []
    for line in demo.stdout:
        lines.append(line)
        if line.startswith("Ctrl-C"):
            break
    kubeconfig = next(line.rpartition("=")[2].strip() for line in lines if "export KUBECONFIG" in line)
    jobs = jobs_of(yaml.safe_load(Path(kubeconfig).read_text()))
    demo.send_signal(signal.SIGINT)
    code = demo.wait(60)
    demo.stdout.close()

    assert code == 130
    assert not Path(kubeconfig).exists()
    assert jobs == {"pretrain", "finetune", "allreduce"}
    said = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("  export")]
    assert said[: said.index("kubectl get pods -A -o wide")] == [
        "both run within what they own",
        "it borrows 4 that production does not use",
        "it waits whole: nothing of it starts",
        "what was borrowed is given back: finetune is suspended as a whole",
        "finetune goes on, and the gang starts whole",
    ]
    assert any("4 queued jobs admitted, in 5 admissions" in line for line in lines)


def jobs_of(kubeconfig: dict[str, Any]) -> set[str]:
    """What the cluster that stays up has to show."""
    client = kubernetes.config.new_client_from_config_dict(kubeconfig)
    found = kubernetes.client.BatchV1Api(client).list_job_for_all_namespaces()
    client.close()
    return {job.metadata.name for job in found.items}
