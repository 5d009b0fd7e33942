"""Objects as tables: the columns of their kind, and a row of cells for each."""

from collections.abc import Callable, Sequence

from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object
from mooring.kubeapi.tables.column import AGE, CREATED_AT, NAME, Column
from mooring.kubeapi.tables.columns import COLUMNS
from mooring.kubeapi.tables.foreign import FOREIGN
from mooring.kubeapi.tables.pods import pod_cells, row_conditions

Declared = Callable[[Resource, str], Sequence[Column] | None]
"""The columns that a CustomResourceDefinition declares for a version of its resource; None for other resources."""


class Tables:
    """Makes tables of all resources."""

    def __init__(self, now: Callable[[], float], declared: Declared = lambda resource, version: None) -> None:
        self._now, self._declared = now, declared

    def columns(self, resource: Resource, version: str = "") -> Sequence[Column]:
        found = self._declared(resource, version) if resource.definition else None
        if found is not None:
            return found
        default = (NAME, AGE) if resource.custom or resource.definition else (NAME, CREATED_AT)
        return COLUMNS.get(resource.key) or FOREIGN.get(resource.key) or default

    def table(self, resource: Resource, objects: list[Object], version: str = "") -> Object:
        """Columns and rows of a Table; what else it says of itself and its objects, the server adds."""
        columns, now = self.columns(resource, version), self._now()
        rows: list[Object] = []
        for obj in objects:
            if resource.key == "pods":
                row: Object = {"cells": pod_cells(obj, now)}
                if conditions := row_conditions(obj):
                    row["conditions"] = conditions
            else:
                row = {"cells": [column.cell(obj, now) for column in columns]}
            rows.append(row)
        return {"columnDefinitions": [column.definition for column in columns], "rows": rows}
