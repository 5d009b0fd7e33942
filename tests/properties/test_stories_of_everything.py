"""Random stories with everything in them, seen by a witness that counts for itself.

Nothing is over-allocated (nodes, devices, quotas), a gang is whole or absent, no pod waits that fits or that could be
helped by evicting less urgent ones, no pod is evicted again and again or in vain, and every story ends. More stories:
`MOORING_STORIES=5000 MOORING_FIRST_STORY=9000 pytest -n 0 tests/properties/test_stories_of_everything.py`; a story that
goes wrong is cut down and written to a folder, with the command that runs it.
"""

import copy
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from story_witness import Complaint, tell
from story_worlds import Story, make_story

from mooring.model.decisions import Admit, Bind, Evict

STORIES, FIRST = int(os.environ.get("MOORING_STORIES", "100")), int(os.environ.get("MOORING_FIRST_STORY", "0"))
AT_ONCE = 20
KEPT = ("ResourceFlavor", "LocalQueue", "ClusterQueue", "Queue", "ElasticQuota", "DeviceClass", "ResourceClaimTemplate")
"""Kinds without which a story means something else."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + STORIES, AT_ONCE))
def test_stories_of_everything_hold(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, FIRST + STORIES)):
        story = make_story(seed)
        if complaint_about(story):
            pytest.fail(f"story {seed}: {report(cut_down(story))}")


def test_stories_have_everything_in_them() -> None:
    happened: Counter[str] = Counter()
    for seed in range(40):
        witness = tell(make_story(seed))
        happened.update(type(decision).__name__ for decision in witness.decisions)
        happened.update(witness.family(key) for key in witness.cluster.running if key in witness.cluster.pods)
        happened.update("device" for _ in witness.cluster.devices)
        happened.update("card" for cards in witness.cluster.cards.values() for _ in cards)
        happened.update("pinned" for _ in witness.cluster.cpus)

    families = ("kueue", "volcano", "kai", "yunikorn", "sig", "koordinator")
    expected = (Bind.__name__, Evict.__name__, Admit.__name__, "device", "card", "pinned", *families)
    assert [name for name in expected if not happened[name]] == []


def test_a_witness_complains_of_what_is_wrong() -> None:
    """A pod that no node is said to have room for, and that runs all the same."""
    story = make_story(3)
    told = tell(story)
    (key, node) = next(iter(told.cluster.running.items()))
    told.cluster.nodes[node]["status"]["allocatable"]["cpu"] = "0"
    assert told.cluster.overdrawn(node) == [f"cpu of {node}"]
    told.cluster.running[key] = "elsewhere"
    with pytest.raises(Complaint, match="differ on where pods run"):
        told.check()


def complaint_about(story: Story) -> str:
    """What is wrong with how a story goes; empty if nothing is."""
    try:
        tell(story)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def cut_down(story: Story) -> Story:
    """The least of a story of which the same complaint is heard."""
    wanted = _kind_of(complaint_about(story))
    while True:
        for less in _with_less(story):
            if _kind_of(complaint_about(less)) == wanted:
                story = less
                break
        else:
            return story


def _kind_of(complaint: str) -> str:
    return re.sub(r"\b[a-z]+/\S+|\bn?\d+\b", "_", complaint)[:60]


def _with_less(story: Story) -> Iterator[Story]:
    for number in range(1, len(story.steps)):
        less = copy.deepcopy(story)
        seconds, _ = less.steps.pop(number)
        if number < len(less.steps):
            less.steps[number] = (less.steps[number][0] + seconds, less.steps[number][1])
        yield less
    for number, (_, documents) in enumerate(story.steps):
        for index in reversed(range(len(documents))):
            if documents[index]["kind"] not in KEPT:
                less = copy.deepcopy(story)
                del less.steps[number][1][index]
                yield less


def report(story: Story) -> str:
    """The complaint, and the command that shows it."""
    folder = Path(tempfile.mkdtemp(prefix="mooring-story-"))
    files, config = story.write(folder)
    then = [f"--then {seconds:g}s:{file}" for file, (seconds, _) in zip(files[1:], story.steps[1:], strict=True)]
    command = " ".join(["mooring schedule", f"-f {files[0]}", *then, *([f"--config {config}"] if config else [])])
    return f"{complaint_about(story)}\n{command}"
