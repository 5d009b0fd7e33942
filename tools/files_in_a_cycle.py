"""Which files of Mooring run in one cycle: for one queued job, and for one gang that asks for a rack.

    python tools/files_in_a_cycle.py [--list]

What one has to have open to follow such a cycle; plugins, of which each is asked the same, are counted apart. The job
comes after one like it: what is read and compiled once is not part of every cycle.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import mooring
from mooring.assembly import assemble
from mooring.model.loading.manifests import build_manifests
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job

SOURCES = Path(mooring.__file__).parent


def files_of(run: Callable[[], object]) -> list[str]:
    """The files of the package in which a call executes anything."""
    found = set[str]()

    def note(frame: FrameType, *_: Any) -> None:
        found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    names = (Path(name).relative_to(SOURCES).as_posix() for name in found if name.startswith(str(SOURCES)))
    return sorted(name for name in names if not name.startswith("testing/"))


def queued_job() -> list[str]:
    world = TenantWorld([make_queue("queue", make_group(cpu=make_quota(10)))])
    world.submit(make_job("first", pods=2, cpu=1))
    world.cycle()
    world.cycle()
    world.submit(make_job("job", pods=2, cpu=1))
    return files_of(world.cycle)


def gang_in_a_rack() -> list[str]:
    def node(number: int) -> dict[str, Any]:
        labels = {"rack": f"rack-{number // 2}", "kubernetes.io/hostname": f"node-{number}"}
        metadata = {"name": f"node-{number}", "labels": labels}
        return {"kind": "Node", "metadata": metadata, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}

    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    job = {"parallelism": 4, "completions": 4, "template": template}
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "racks"}}
    documents = [
        *(node(number) for number in range(4)),
        {**topology, "spec": {"levels": levels}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": job},
    ]
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)
    return files_of(lambda: scheduler.cycle(1.0))


def main() -> None:
    for title, files in (("a queued job", queued_job()), ("a gang in a rack", gang_in_a_rack())):
        others = [name for name in files if not name.startswith("plugins/")]
        print(f"{title}: {len(others)} files, and {len(files) - len(others)} of plugins")
        if "--list" in sys.argv:
            print("".join(f"  {name}\n" for name in others), end="")


if __name__ == "__main__":
    main()
