"""`--then`: what is decided now, and after each of the things that happen next."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.reading import Loaded, Step
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests
from mooring.observe.progress import Progress

_NOTE_OF_RIGHTS = re.compile(r"SPDX-|copyright\b", re.IGNORECASE)
_LICENCE = re.compile(
    r"licensed (under|to)\b|/licenses/|without warrant|all rights reserved|permission is hereby granted", re.IGNORECASE
)


@dataclass(frozen=True)
class Moment:
    """A step when everything is decided that it brought about. The driver goes on with the next one."""

    step: Step
    said: str
    """The comment at the top of the file."""
    picture: Manifests
    offline: Offline
    decisions: list[Decision]
    """Those included that were taken while time passed until then."""
    ran: dict[str, Pod]
    """The pods that ran before any of that."""


def moments(loaded: Loaded, progress: Progress) -> Iterator[Moment]:
    """Decide, let each step happen, and decide again."""
    inputs = loaded.inputs
    offline = loaded.begin()
    steps = [Step(", ".join(inputs.files), 0.0), *inputs.then]
    for number, (step, picture) in enumerate(zip(steps, loaded.pictures, strict=True)):
        records = offline.scheduler.cluster.pods.records
        ran = {key: records[PodKey(key)].pod for key in offline.placed}
        decisions = loaded.let_happen(offline, number, progress) if number else []
        ran |= {pod.key: pod for pod in picture.pods if pod.spec.node_name}
        ran = {key: pod for key, pod in ran.items() if key not in {lost.pod.key for lost in offline.lost}}
        decisions += offline.decide(progress)
        progress.phase("asking why the others wait")
        said = caption(inputs.files if number == 0 else [step.file]) if inputs.then else ""
        yield Moment(step, said, picture, offline, decisions, ran)


def caption(files: Sequence[str]) -> str:
    """The comment at the top of the first file that has one; who holds which rights is no caption."""
    for name in files:
        path = Path(name)
        for file in sorted(path.glob("*.y*ml")) if path.is_dir() else [path]:
            if file.suffix in (".yaml", ".yml") and file.is_file():
                said = _without_licence(file.read_text(errors="replace").splitlines())
                if said:
                    return said
    return ""


def _without_licence(lines: Sequence[str]) -> str:
    """The first comment before any manifest that is not about rights: paragraphs end with an empty line."""
    blocks: list[list[list[str]]] = [[[]]]
    for line in lines:
        text = line.lstrip("#").strip()
        if not line.startswith("#"):
            if line.strip():
                break
            blocks.append([[]])  # another comment
        elif text:
            if not _NOTE_OF_RIGHTS.match(text):
                blocks[-1][-1].append(text)
        else:
            blocks[-1].append([])  # another paragraph of the same one
    for block in blocks:
        said = [" ".join(paragraph) for paragraph in block]
        kept = [paragraph for paragraph in said if paragraph and not _LICENCE.search(paragraph)]
        if kept:
            return " ".join(kept)
    return ""
