"""Reports and metrics read what actions show of themselves (`Action.report`), and know no action."""

from pathlib import Path

import mooring
from mooring.actions.admit.section import AdmissionSection
from mooring.actions.place.section import PlacingSection
from mooring.actions.shares.section import SharesSection
from mooring.testing.builders import make_node, make_scheduler


def test_reports_and_drivers_do_not_look_through_the_actions() -> None:
    root = Path(mooring.__file__).parent
    looking = [
        path.relative_to(root).as_posix()
        for room in ("report", "drivers", "cli")
        for path in sorted((root / room).rglob("*.py"))
        if "scheduler.actions" in path.read_text()
    ]
    assert looking == []


def test_actions_show_themselves() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    scheduler.cycle(0.0)

    (admission,) = scheduler.sections(AdmissionSection)
    assert admission.current is None and not admission.workloads
    assert not admission.admission.structure.queues
    assert len(scheduler.sections(PlacingSection)) == 1
    families = [family.name for action in scheduler.actions for family in action.families]
    assert [section.family.name for section in scheduler.sections(SharesSection)] == families
