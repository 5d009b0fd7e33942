"""Results in files: raw tables as csv or parquet for people's notebooks, and whole runs to be taken up again."""

import csv
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from mooring.errors import InputError
from mooring.report.simulation.results import (
    Amounts,
    Floats,
    Ints,
    Jobs,
    NodeChanges,
    Nodes,
    QueueAmounts,
    Run,
    Samples,
    Stays,
    Table,
    Totals,
)

RawFormat = Literal["csv", "parquet"]
TABLES: dict[str, type[Table]] = {
    "jobs": Jobs,
    "stays": Stays,
    "nodes": Nodes,
    "node_changes": NodeChanges,
    "samples": Samples,
    "amounts": Amounts,
    "queues": QueueAmounts,
}
"""By the field of a Run."""


def write_tables(run: Run, folder: Path, form: RawFormat) -> None:
    """Write every table of a run to a file of its own: `jobs.csv`, `stays.csv` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in run.tables:
        if form == "csv":
            _write_csv(table, folder / f"{table.name}.csv")
        else:
            _write_parquet(table, folder / f"{table.name}.parquet")


def _write_csv(table: Table, path: Path) -> None:
    columns = table.columns()
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(_texts(column) for column in columns.values()), strict=True))


def _texts(column: Any) -> Iterator[Any]:
    """Values as text that reads back as the same number; what has not happened is empty."""
    values = column.tolist()
    if column.dtype != np.float64:
        yield from values
        return
    for value in values:
        if math.isnan(value):
            yield ""
        else:
            yield int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _write_parquet(table: Table, path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        message = "--format parquet: expected the package pyarrow (pip install 'mooring[parquet]'), found none"
        raise InputError(message) from error
    columns = {
        name: pyarrow.array(column.tolist() if column.dtype == np.object_ else column)
        for name, column in table.columns().items()
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


# Whole runs.


def dump_run(run: Run) -> bytes:
    """A run as bytes: the same run gives the same ones."""
    tables = {
        name: {column: _raw(values) for column, values in getattr(run, name).columns().items()} for name in TABLES
    }
    head = {"policy": run.policy, "seed": run.seed, "horizon": run.horizon, "totals": run.totals}
    return msgspec.msgpack.encode({**head, "tables": tables})


def load_run(content: bytes) -> Run:
    """The run that was dumped."""
    found = msgspec.msgpack.decode(content)
    tables: dict[str, Any] = {
        name: table(**{field.name: _column(found["tables"][name][field.name], field.type) for field in fields(table)})
        for name, table in TABLES.items()
    }
    totals = msgspec.convert(found["totals"], Totals)
    return Run(policy=found["policy"], seed=found["seed"], horizon=found["horizon"], totals=totals, **tables)


def _raw(values: Any) -> Any:
    return values.tolist() if values.dtype == np.object_ else values.tobytes()


def _column(raw: Any, kind: Any) -> Any:
    if kind is Floats or kind is Ints:
        return np.frombuffer(raw, np.float64 if kind is Floats else np.int64)
    texts = np.empty(len(raw), np.object_)
    texts[:] = raw
    return texts
