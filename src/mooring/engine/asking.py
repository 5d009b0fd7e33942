"""Asking plugins: their answers are checked, and what they raise becomes a PluginError that says who, at which point,
and in which line of the plugin's file.

Plugins are asked about many rows at once, so that all this costs next to nothing a row.
"""

import traceback
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import (
    IGNORED,
    MAX_SCORE,
    MIN_SCORE,
    Changed,
    Codes,
    Filter,
    FilterAnswers,
    Mask,
    Plugin,
    PreFilter,
    PreScore,
    Score,
    ScoreAnswers,
    Scores,
    Skip,
)
from mooring.engine.shortcuts import Gone, QuickMask, SupposingFilter
from mooring.engine.verdict import Rejection
from mooring.errors import PluginError, WrongAnswer
from mooring.state.cluster import Cluster
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

FEW = 32
"""Up to so many numbers plain Python is faster than calling NumPy."""

_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)
_LARGEST = 2.0**62


# Whose fault it is.


class faults_of:  # noqa: N801  it reads as a phrase: with faults_of(plugin, "permit")
    """What is raised inside becomes a PluginError of this plugin at this point."""

    __slots__ = ("_plugin", "_point")

    def __init__(self, plugin: Plugin, point: str) -> None:
        self._plugin = plugin
        self._point = point

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, Exception):
            blame(self._plugin, self._point, error)


def blame(plugin: Plugin, point: str, error: Exception) -> NoReturn:
    """Raise an error in the name of the plugin that caused it."""
    if isinstance(error, PluginError | MemoryError):
        raise error
    file, line = _where(plugin, point, error)
    raise PluginError(plugin.name, point, error, file=file, line=line) from error


def _where(plugin: Plugin, point: str, error: Exception) -> tuple[str, int]:
    """The innermost line of the plugin's module that the error came through, or the head of the method."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == type(plugin).__module__:
            found = frame.f_code.co_filename, line
    if found is not None:
        return found
    code = getattr(getattr(type(plugin), point, None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def _refuse(plugin: Plugin, point: str, *, expected: str, found: str) -> NoReturn:
    blame(plugin, point, WrongAnswer(expected=expected, found=found))


# Filters.


def ask_pre_filter(plugin: FilterAnswers, shape: Shape, cluster: Cluster) -> Any | Skip | Rejection:
    """Let a filter gather what it needs; None from one that gathers nothing."""
    if not isinstance(plugin, PreFilter):
        return None
    try:
        return plugin.pre_filter(shape, cluster.view)
    except Exception as error:  # whatever a plugin raises
        blame(plugin, "pre_filter", error)


def ask_narrow(plugin: PreFilter, shape: Shape) -> frozenset[str] | Rejection | None:
    """The only nodes worth looking at, if the plugin knows them beforehand."""
    try:
        return plugin.narrow(shape)
    except Exception as error:
        blame(plugin, "narrow", error)


def ask_filter(plugin: FilterAnswers, shape: Shape, nodes: NodeRows, prepared: Any) -> Codes:
    """Ask a filter about some rows; a mask becomes codes, 0 where the node will do."""
    return as_codes(_answer(plugin, shape, nodes, prepared))


def _answer(plugin: FilterAnswers, shape: Shape, nodes: NodeRows, prepared: Any) -> NDArray[Any]:
    try:
        if isinstance(plugin, PreFilter):
            answer: NDArray[Any] = np.asarray(plugin.filter(shape, nodes, prepared))
        else:
            assert isinstance(plugin, Filter)
            answer = np.asarray(plugin.filter(shape, nodes))
    except Exception as error:
        blame(plugin, "filter", error)
    return checked(plugin, "filter", answer, nodes)


def ask_passes(plugin: FilterAnswers, shape: Shape, nodes: NodeRows, prepared: Any) -> Mask:
    """Ask a filter about some rows when its reasons do not matter."""
    if not isinstance(plugin, QuickMask):
        answer: NDArray[Any] = _answer(plugin, shape, nodes, prepared)
        mask: Mask = answer if answer.dtype is _BOOL else answer == 0
        return mask
    try:
        answer = plugin.passes(shape, nodes, prepared)
    except Exception as error:
        blame(plugin, "passes", error)
    return answer if answer.shape == nodes.index.shape else checked(plugin, "passes", answer, nodes)


def ask_filter_without(plugin: SupposingFilter, shape: Shape, nodes: NodeRows, prepared: Any, gone: Gone) -> Codes:
    """Ask a filter about some rows as they would be without some of their pods."""
    with faults_of(plugin, "filter_without"):
        return as_codes(checked(plugin, "filter_without", plugin.filter_without(shape, nodes, prepared, gone), nodes))


def checked(plugin: FilterAnswers, point: str, answer: NDArray[Any], nodes: NodeRows) -> NDArray[Any]:
    """A filter's answer, if it is one truth or one code a row."""
    if answer.shape != nodes.index.shape:
        expected = f"one answer for each of {len(nodes)} rows"
        _refuse(plugin, point, expected=expected, found=f"an array of shape {answer.shape}")
    if answer.dtype.kind not in "biu":
        expected = "truths, or whole numbers that are 0 where the node will do"
        _refuse(plugin, point, expected=expected, found=f"an array of {answer.dtype}")
    return answer


def as_codes(answer: Mask | Codes) -> Codes:
    """A filter's answer as codes, 0 where the node will do."""
    found: NDArray[Any] = answer
    return (~found).astype(np.int64) if found.dtype == np.bool_ else found


def ask_rejection(plugin: FilterAnswers, shape: Shape, code: int) -> Rejection:
    """What a filter means by a code."""
    with faults_of(plugin, "rejection"):
        return plugin.rejection(shape, code)


def ask_is_helped_by(plugin: FilterAnswers, shape: Shape, changed: Changed) -> bool:
    """Whether an object that changed can help a pod that a filter refused."""
    with faults_of(plugin, "is_helped_by"):
        return bool(plugin.is_helped_by(shape, changed))


# Scores.


def ask_pre_score(plugin: ScoreAnswers, shape: Shape, cluster: Cluster, feasible: NodeRows) -> Any | Skip:
    """Let a score plugin gather what it needs; None from one that gathers nothing."""
    if not isinstance(plugin, PreScore):
        return None
    try:
        return plugin.pre_score(shape, cluster.view, feasible)
    except Exception as error:
        blame(plugin, "pre_score", error)


def ask_score(plugin: ScoreAnswers, shape: Shape, nodes: NodeRows, prepared: Any) -> Scores:
    """Ask a score plugin about some rows: raw scores, before normalising."""
    try:
        if isinstance(plugin, PreScore):
            answer = np.asarray(plugin.score(shape, nodes, prepared))
        else:
            assert isinstance(plugin, Score)
            answer = np.asarray(plugin.score(shape, nodes))
    except Exception as error:
        blame(plugin, "score", error)
    if answer.shape != nodes.index.shape:
        expected = f"one score for each of {len(nodes)} rows"
        _refuse(plugin, "score", expected=expected, found=f"an array of shape {answer.shape}")
    return answer if answer.dtype is _INT64 else _whole(plugin, "score", answer)


def _whole(plugin: ScoreAnswers, point: str, answer: NDArray[Any]) -> Scores:
    """Scores as whole numbers; fractions are cut off."""
    if answer.dtype.kind == "f":
        if not (np.abs(answer) < _LARGEST).all():  # NaN is not below anything
            odd = answer[~(np.abs(answer) < _LARGEST)][0]
            _refuse(plugin, point, expected="a number for every row", found=str(odd))
    elif answer.dtype.kind not in "biu":
        _refuse(plugin, point, expected="whole numbers", found=f"an array of {answer.dtype}")
    return answer.astype(np.int64)


def extremes(raw: Scores) -> tuple[int, int]:
    """The lowest and the highest raw score, ignored rows aside."""
    if len(raw) <= FEW:
        few: list[int] = raw.tolist()
        if IGNORED in few:
            few = [score for score in few if score != IGNORED]
        return (min(few), max(few)) if few else (0, 0)
    counted = raw[raw != IGNORED]
    return (int(counted.min()), int(counted.max())) if len(counted) else (0, 0)


def normalized(plugin: ScoreAnswers, raw: Scores) -> Scores:
    """Raw scores of all feasible rows, brought into 0..100."""
    return normalized_between(plugin, raw, *(extremes(raw) if plugin.normalizes else (0, 0)))


def normalized_between(plugin: ScoreAnswers, raw: Scores, lowest: int, highest: int) -> Scores:
    """Raw scores of some feasible rows, given the extremes over all of them."""
    final, point = raw, "score"
    if plugin.normalizes:
        point = "normalize"
        try:
            final = plugin.normalize(raw, lowest, highest)
        except Exception as error:
            blame(plugin, point, error)
        if final.dtype is not _INT64:
            final = _whole(plugin, point, final)
    if len(final):
        few = final.tolist() if len(final) <= FEW else (int(final.min()), int(final.max()))
        low, high = min(few), max(few)
        if low < MIN_SCORE or high > MAX_SCORE:
            worst = low if low < MIN_SCORE else high
            _refuse(plugin, point, expected=f"scores from {MIN_SCORE} to {MAX_SCORE}", found=str(worst))
    return final
