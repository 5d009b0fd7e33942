"""The form of what commands print with -o json, as JSON Schemas: docs/schemas/.

python tools/output_schemas.py          write them
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from mooring.cli.output import VERSION
from mooring.report.capacity import CapacityResult
from mooring.report.explain.data import PodExplanation
from mooring.report.node_groups import NodeGroupsResult
from mooring.report.queues.data import QueuesResult
from mooring.report.rebalance import RebalanceResult
from mooring.report.recommendations import Recommendations
from mooring.report.schedule import Result
from mooring.report.story import Story

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"
PRINTED: dict[str, Any] = {
    "Schedule": Result,
    "ScheduleStory": Story[Result],
    "Queues": QueuesResult,
    "QueuesStory": Story[QueuesResult],
    "Explanation": PodExplanation,
    "Rebalance": RebalanceResult,
    "Recommendations": Recommendations,
    "Capacity": CapacityResult,
    "NodeGroups": NodeGroupsResult,
}
"""By kind, what `schedule`, `queues`, `explain`, `rebalance`, `recommend` and `capacity` print; stories with --then."""


def schema(kind: str) -> dict[str, Any]:
    """The schema of one kind, with the two fields that all of them have."""
    (found,), parts = msgspec.json.schema_components([PRINTED[kind]], ref_template="#/$defs/{name}")
    outer = parts.pop(found["$ref"].rpartition("/")[2])
    common = {"apiVersion": {"const": VERSION}, "kind": {"const": kind}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "type": "object",
        "properties": {**common, **outer["properties"]},
        "required": [*common, *outer.get("required", [])],
        "$defs": dict(sorted(parts.items())),
    }


def main() -> None:
    SCHEMAS.mkdir(exist_ok=True)
    for kind in PRINTED:
        (SCHEMAS / f"{kind}.json").write_text(json.dumps(schema(kind), indent=1) + "\n")


if __name__ == "__main__":
    main()
