"""Every example applies with a plain `kubectl apply`, and its pods run on `mooring up` but for those that must wait."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from with_kubectl import KUBECTL, Kubectl, Refused, cluster_up, eventually

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")
EXAMPLES = Path(__file__).parents[2] / "examples"

NOT_APPLIED = {
    "bin-packing/scheduler.yaml": "for --config",
    "bin-packing/scheduler-v1beta1.yaml": "for --config",
    "node-pools/scheduler.yaml": "for --config",
    "load/scheduler.yaml": "for --config",
    "load/gpu-scheduler.yaml": "for --config",
    "load/metrics.yaml": "for --metrics",
    "colocation/slo-controller-config.yaml": "for --config",
    "colocation/metrics.yaml": "for --metrics",
    "profiles/scheduler.yaml": "for --config",
    "tenants/policies.yaml": "for --config",
    "tenants/drf/use-all.yaml": "for --config",
    "devices/device-plugin.yaml": "for --config",
    "projects/yunikorn/queues.yaml": "for --config",
    "devices/time-slicing.yaml": "with device-plugin.yaml: simulated nodes offer what they say, plugins do not run",
    "devices/nvlink-and-nic/3-gpu-breaks.yaml": "whether the work on that GPU is done by then is a matter of chance",
    "gangs/two-gangs/2-first-completes.yaml": "for `mooring schedule --then`; here Jobs complete by themselves",
}
"""By file, why kubectl does not get it."""
OTHER_FOLDERS = {
    "simulations": "for `mooring simulate`",
    "ai-platform": "a test of its own",
    "capacity": "for `mooring capacity`: its nodes are those that Karpenter would have launched",
    "rebalance": "for `mooring rebalance`",
    "rightsizing": "for `mooring recommend`: its pods run before their controller is there",
}


class Story(NamedTuple):
    """What is left when the files of an example have been applied, one after the other."""

    pending: int = 0
    """Pods that have to wait."""
    or_pending: int | None = None
    """How many it may be instead, where it counts which pod is looked at first."""
    refused: tuple[str, ...] = ()
    """What the API says no to, on purpose."""
    config: str = ""
    scheduler: str = ""
    """What its pods ask for instead of the usual scheduler."""
    makes_pods: bool = True
    """False for kinds whose own controllers do not run here."""
    verb: str = "apply"


STORIES = {
    "bin-packing/cluster.yaml": Story(config="bin-packing/scheduler.yaml"),
    "colocation": Story(pending=7),
    "data-locality": Story(pending=1),
    "demo": Story(pending=12),
    "devices/compute-domain.yaml": Story(),
    "devices/mig-mix.yaml": Story(),
    "devices/nvlink-and-nic": Story(),
    "devices/nvlink-domains.yaml": Story(),
    "devices/one-card-three-ways.yaml": Story(pending=1, or_pending=2),
    "devices/shared-card.yaml": Story(pending=1),
    "devices/shared-claim.yaml": Story(),
    "devices/single-numa-node.yaml": Story(),
    "gangs/elastic": Story(),
    "gangs/inference-first": Story(),
    "gangs/kai-workloads": Story(),
    "gangs/koordinator-groups": Story(),
    "gangs/preempted-whole": Story(),
    # No ten minutes pass here, so that both others start before the gang. A gang's time is a whole second: if all come
    # in the same one, and are looked at together, it goes first, and nobody waits in the end.
    "gangs/reservation": Story(pending=8, or_pending=0),
    "gangs/topology": Story(pending=48),
    "gangs/two-gangs": Story(),
    "gangs/waits-whole": Story(),
    "gpu-pools": Story(pending=1),
    "host-ports": Story(pending=1),
    "load": Story(),
    "node-pools": Story(pending=1, config="node-pools/scheduler.yaml"),
    "plugins": Story(),
    "preemption": Story(),
    "priorities": Story(),
    "profiles/cluster.yaml": Story(pending=1, config="profiles/scheduler.yaml"),
    "projects/grove": Story(makes_pods=False),
    "projects/hami": Story(pending=1),
    "projects/kai": Story(pending=1, scheduler="kai-scheduler"),
    "projects/koordinator": Story(pending=3, scheduler="koord-scheduler"),
    "projects/kubeflow-trainer": Story(),
    "projects/kueue": Story(verb="create"),
    "projects/leaderworkerset": Story(pending=2),
    "projects/volcano": Story(pending=20, scheduler="volcano"),
    "projects/yunikorn": Story(pending=4, config="projects/yunikorn/queues.yaml", scheduler="yunikorn"),
    "quotas": Story(refused=("undecided", "greedy", "loud")),
    "sla-tolerations": Story(pending=2),
    "tenants/drf": Story(),
    "tenants/topology": Story(),
    "tenants/two-teams": Story(),
    "volumes": Story(pending=1),
    "zone-spread": Story(pending=1),
}


def files_of(story: str) -> list[Path]:
    path = EXAMPLES / story
    return (
        [path] if path.is_file() else [file for file in sorted(path.glob("*.yaml")) if name_of(file) not in NOT_APPLIED]
    )


def configuration(story: Story, folder: Path) -> Path:
    """What the story says, for pods that ask for its scheduler."""
    given = EXAMPLES / story.config
    if not story.scheduler:
        return given
    text = given.read_text() + "---\n" if story.config else ""
    text += "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    path = folder / "scheduler.yaml"
    path.write_text(f"{text}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: {story.scheduler}}}]\n")
    return path


def name_of(file: Path) -> str:
    return file.relative_to(EXAMPLES).as_posix()


def ends_something(file: Path) -> bool:
    """Whether a step is about objects that go: what `mooring schedule --then` reads as their end, kubectl deletes."""
    documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
    return all("deletionTimestamp" in document["metadata"] for document in documents)


def phases(kubectl: Kubectl) -> Counter[str]:
    table = kubectl("get pods -A --no-headers -o custom-columns=PHASE:.status.phase").split()
    return Counter("Ran" if phase in ("Running", "Succeeded") else phase for phase in table)


def test_every_example_has_a_story() -> None:
    told = {name_of(file) for story in STORIES for file in files_of(story)} | NOT_APPLIED.keys()
    there = {name_of(file) for file in EXAMPLES.rglob("*.yaml")}

    assert {name for name in there if name.partition("/")[0] not in OTHER_FOLDERS} == told


@pytest.mark.parametrize("name", STORIES)
def test_an_example_applies_and_its_pods_run(name: str, tmp_path: Path) -> None:
    story = STORIES[name]
    options = ["--config", str(configuration(story, tmp_path))] if story.config or story.scheduler else []
    refused = ""
    with cluster_up(tmp_path, "--nodes", "0", *options) as kubectl:
        for file in files_of(name):
            try:
                kubectl(f"{'delete' if ends_something(file) else story.verb} -f {file}")
            except Refused as error:
                refused += str(error)
        if story.makes_pods:
            eventually(
                lambda: phases(kubectl)["Ran"] > 0 and phases(kubectl)["Pending"] in (story.pending, story.or_pending),
                lambda: phases(kubectl),
            )
        found = phases(kubectl)

    assert [line.partition('"')[2].partition('"')[0] for line in said_no(refused)] == list(story.refused)
    assert set(found) <= {"Ran", "Pending"}


def test_the_platform_applies_and_hundreds_of_its_pods_run(tmp_path: Path) -> None:
    with cluster_up(tmp_path, "--nodes", "0") as kubectl:
        kubectl(f"apply -f {EXAMPLES / 'ai-platform'}")
        eventually(lambda: kubectl("get pods -A --field-selector=status.phase=Running -o name").count("pod/") > 300)
        nodes = kubectl("get nodes --no-headers").splitlines()

    assert (len(nodes), {line.split()[1] for line in nodes}) == (370, {"Ready"})


def test_a_configuration_decides_where_pods_go(tmp_path: Path) -> None:
    folder = EXAMPLES / "bin-packing"
    options = ["--config", str(folder / "scheduler.yaml"), "-f", str(folder / "cluster.yaml")]
    with cluster_up(tmp_path, *options) as kubectl:
        eventually(lambda: phases(kubectl) == {"Ran": 8}, lambda: phases(kubectl))
        nodes = set(kubectl("get pods -o jsonpath={.items[*].spec.nodeName}").split())

    assert len(nodes) == 1


def said_no(text: str) -> list[str]:
    """Of kubectl's words those about objects that were refused, from the object's kind on."""
    return [line.partition('.yaml": ')[2] for line in text.splitlines() if line.startswith("Error from server")]
