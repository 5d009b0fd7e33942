"""Check the words of the documentation and of `--help`: things are "it", people are "who", and a noun is named.

    python tools/vocabulary.py

Prints each line that breaks a rule, and fails. Files in NOT_YET_CONVERTED may break them. The list only shrinks: a file
in it without any such line fails too, and no file is added.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "docs_site"))

import command_reference  # noqa: E402
import metric_reference  # noqa: E402

PEOPLE = "people|person|users?|engineers?|operators?|readers?|authors?|maintainers?|administrators?|those of you|anyone"
RULES = {
    re.compile(r"\b(somebody|someone|anybody|nobody|everybody|everyone|whoever|whomever)\b", re.IGNORECASE): (
        "name the noun: a pod, a queue, an account"
    ),
    re.compile(r"\bwhom\b", re.IGNORECASE): "name the noun: the pod for which ...",
    re.compile(rf"(?:\b(?P<people>{PEOPLE}),?\s+)?\b(?P<who>who)\b", re.IGNORECASE): (
        '"who" is for people: which pod, that'
    ),
}
"""What may not be written, and what to write instead."""
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
NOT_YET_CONVERTED = frozenset(
    (
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/api-objects.md",
        "docs/architecture.md",
        "docs/commands.md",
        "docs/configuration.md",
        "docs/dashboard.md",
        "docs/decisions/0001-columns-not-objects.md",
        "docs/decisions/0002-shapes-and-selected-labels.md",
        "docs/decisions/0003-every-node-is-scored.md",
        "docs/decisions/0004-ties-by-seeded-number.md",
        "docs/decisions/0005-dependencies.md",
        "docs/decisions/0007-plugins-answer-for-rows.md",
        "docs/decisions/0008-batches-change-no-decision.md",
        "docs/decisions/0009-what-the-profile-taught.md",
        "docs/decisions/0010-room-is-made-at-once.md",
        "docs/decisions/0011-compiled-arithmetic.md",
        "docs/decisions/0012-legal-fields-are-data.md",
        "docs/decisions/0013-one-catalog.md",
        "docs/decisions/0014-what-a-plugin-may-count-on.md",
        "docs/decisions/0015-one-book-one-what-if.md",
        "docs/decisions/0016-admission-shares-and-gangs.md",
        "docs/decisions/0017-costs-that-do-not-grow.md",
        "docs/decisions/0018-the-embedded-control-plane.md",
        "docs/decisions/0019-live-driver.md",
        "docs/decisions/0020-cel-of-our-own.md",
        "docs/decisions/README.md",
        "docs/devices.md",
        "docs/embedded-control-plane.md",
        "docs/fair-shares.md",
        "docs/gang-dialects.md",
        "docs/gangs.md",
        "docs/glossary.md",
        "docs/journey-of-a-gang.md",
        "docs/journey-of-a-pod.md",
        "docs/journey-of-a-preemption.md",
        "docs/journey-of-a-queued-job.md",
        "docs/manifests.md",
        "docs/numa.md",
        "docs/preemption.md",
        "docs/queued-work.md",
        "docs/resource-quotas.md",
        "docs/running-live.md",
        "docs/shared-gpus.md",
        "docs/simulated-nodes.md",
        "docs/simulation.md",
        "docs/tenant-policies.md",
        "docs/tenants.md",
        "docs/topology-aware-admission.md",
        "docs/traces.md",
        "docs/workload-controllers.md",
        "docs/writing-a-plugin.md",
        "mooring --help",
    )
)


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text that is checked, with its name."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path.relative_to(ROOT).as_posix(), path.read_text()
    yield "SECURITY.md", (ROOT / "SECURITY.md").read_text()
    yield "CONTRIBUTING.md", (ROOT / "CONTRIBUTING.md").read_text()
    yield "mooring --help", command_reference.page()
    yield "the help of metrics", metric_reference.page()


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the word and the advice for each word of a text that breaks a rule; code is left out."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for rule, advice in RULES.items():
        for found in rule.finditer(prose):
            if "people" in rule.groupindex and found["people"]:
                continue
            word = found["who"] if "who" in rule.groupindex else found[0]
            yield prose.count("\n", 0, found.end()) + 1, word.strip(), advice


def main() -> int:
    """Print every fault of a file that is converted, and every file of the list that has none; return the exit code."""
    problems = 0
    for name, text in texts():
        found = sorted(faults(text))
        if name in NOT_YET_CONVERTED:
            if not found:
                print(f"{name}: has no fault any more: remove it from NOT_YET_CONVERTED in tools/vocabulary.py")
                problems += 1
            continue
        for line, word, advice in found:
            print(f"{name}:{line}: {word!r}: {advice}")
        problems += len(found)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
