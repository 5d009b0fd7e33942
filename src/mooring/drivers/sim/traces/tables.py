"""Files of comma-separated values, row by row: what is wrong with one is told with file, line and field."""

import csv
import gzip
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from mooring.config.scheduler import suggestion
from mooring.errors import ConfigError
from mooring.model.values.quantity import QuantityError, parse_quantity


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, by column."""

    path: Path
    line: int
    values: dict[str, str]

    def text(self, field: str) -> str:
        """Empty where the column is missing."""
        return self.values.get(field, "").strip()

    def name(self, field: str) -> str:
        return self.text(field) or self.refuse(field, "a name", "none")

    def count(self, field: str, default: int | None = None, *, at_least: int = 0) -> int:
        """A whole number; a field that is empty has the default, if there is one."""
        text = self.text(field)
        if not text and default is not None:
            return default
        if not (text.isascii() and text.isdecimal() and int(text) >= at_least):
            self.refuse(field, f"a whole number from {at_least}", f'"{text}"')
        return int(text)

    def integer(self, field: str, default: int) -> int:
        text = self.text(field)
        try:
            return int(text) if text else default
        except ValueError:
            self.refuse(field, "a whole number", f'"{text}"')

    def seconds(self, field: str, default: float | None = None) -> float:
        """Seconds that are not negative; a field that is empty has the default, if there is one."""
        text = self.text(field)
        if not text and default is not None:
            return default
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and found >= 0):
            self.refuse(field, "seconds, not negative", f'"{text}"')
        return found

    def time(self, field: str, above: float) -> float:
        """Seconds, not before those of the line above."""
        found = self.seconds(field)
        if found < above:
            self.refuse(field, f"no time before that of the line above, {above:.12g}", f"{found:.12g}")
        return found

    def quantity(self, field: str) -> str:
        """A quantity as Kubernetes writes it, of something that is asked for."""
        text = self.text(field)
        try:
            is_amount = parse_quantity(text) >= 0
        except QuantityError:
            is_amount = False
        if not is_amount:
            self.refuse(field, 'a quantity that is not negative, such as "500m" or "2Gi"', f'"{text}"')
        return text

    def refuse(self, field: str, expected: str, found: str) -> NoReturn:
        raise ConfigError(f"{self.path}: line {self.line}", field, expected=expected, found=found)


def read_table(path: Path, required: Sequence[str], known: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows below a line of column names; columns that are not known are refused, if it is said which are."""
    with open_text(path) as file:
        lines = csv.reader(file, strict=True)
        try:
            columns = [name.strip() for name in next(lines, [])]
            _check_columns(path, columns, required, known)
            for values in lines:
                if not values:
                    continue
                row = Row(path, lines.line_num, dict(zip(columns, values, strict=False)))
                if len(values) != len(columns):
                    row.refuse("", f"{len(columns)} fields, as in the first line", str(len(values)))
                yield row
        except (csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            where = f"{path}: line {lines.line_num + 1}"
            raise ConfigError(where, "", expected="comma-separated values in UTF-8", found=str(error)) from error


def _check_columns(path: Path, columns: list[str], required: Iterable[str], known: Sequence[str] | None) -> None:
    """Each column once, all that are needed, and none whose name is only nearly right."""
    first_line = Row(path, 1, {})
    for name in required:
        if name not in columns:
            first_line.refuse(name, "a column of this name", ", ".join(columns) or "no columns")
    for name in columns:
        if columns.count(name) > 1:
            first_line.refuse(name, "each column once", f"{columns.count(name)} of this name")
        # What has a slash in it is somebody's resource.
        if known is not None and name not in known and "/" not in name:
            first_line.refuse(name, f"a known column{suggestion(name, list(known))}", f'"{name}"')


def open_text(path: Path) -> TextIO:
    """A file of text, unpacked if it is packed."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rt", encoding="utf-8", newline="")
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise ConfigError(str(path), "", expected="a file that can be read", found=str(error.strerror)) from error
