"""How fast the CPUs of a node are (normalisation), and how much more a node says it has (amplification).

Both are ratios on the node's annotations, computed as Koordinator's manager does.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node
from mooring.model.values.requests import CPU

NORMALIZATION_ANNOTATION = "node.koordinator.sh/cpu-normalization-ratio"
AMPLIFICATION_ANNOTATION = "node.koordinator.sh/resource-amplification-ratio"
NORMALIZATION_LABEL = "node.koordinator.sh/cpu-normalization-enabled"
CPU_INFO_ANNOTATION = "node.koordinator.sh/cpu-basic-info"
SMALLEST, LARGEST = 1.0, 5.0
_SWITCH = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class _CpuInfo(KubeObject):
    cpu_model: str = ""
    hyper_thread_enabled: bool = False
    turbo_enabled: bool = False

    @property
    def field(self) -> str:
        if self.hyper_thread_enabled:
            return "hyperThreadTurboEnabledRatio" if self.turbo_enabled else "hyperThreadEnabledRatio"
        return "turboEnabledRatio" if self.turbo_enabled else "baseRatio"


class RatioError(ValueError):
    """The ratio of a node cannot be computed, or read: what it was stays."""


def normalization_ratio(config: Mapping[str, Any], node: Node, topology: NodeResourceTopology | None) -> float:
    """The ratio of a `cpu-normalization-config`; 1 where it is off. Raise RatioError if there is none."""
    label = (node.metadata.labels or {}).get(NORMALIZATION_LABEL)
    if label is not None and label not in _SWITCH:
        raise RatioError(f"{NORMALIZATION_LABEL}={label}")
    if not (config.get("enable") if label is None else _SWITCH[label]):
        return SMALLEST
    info = _cpu_info(topology)
    ratio = (config.get("ratioModel") or {}).get(info.cpu_model, {}).get(info.field)
    if ratio is None:
        ratio = config.get("defaultRatio")
    if ratio is None or not SMALLEST <= ratio <= LARGEST:
        raise RatioError(f"the ratio of {info.cpu_model} is {ratio}")
    return float(ratio)


def _cpu_info(topology: NodeResourceTopology | None) -> _CpuInfo:
    text = ((topology.metadata.annotations or {}) if topology is not None else {}).get(CPU_INFO_ANNOTATION)
    if not text:
        raise RatioError("nobody says what CPU it is")
    try:
        return msgspec.json.decode(text, type=_CpuInfo)
    except msgspec.DecodeError as error:
        raise RatioError(str(error)) from error


def annotated_normalization(node: Node) -> float | None:
    """The ratio that a node has had so far; None if it has none. Raise RatioError if it cannot be read."""
    text = (node.metadata.annotations or {}).get(NORMALIZATION_ANNOTATION)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise RatioError(text) from error


def amplification_text(config: Mapping[str, Any], node: Node) -> str | None:
    """What the annotation of amplification is to say by a `resource-amplification-config`; None to remove it."""
    ratios = dict(config.get("resourceAmplificationRatio") or {}) if config.get("enable") else {}
    try:
        had = annotated_normalization(node)
    except RatioError:
        return None
    cpu = ratios.get(CPU, 1) * (1 if had is None else had)
    if cpu > SMALLEST:
        ratios[CPU] = cpu
    if not ratios or min(ratios.values()) < SMALLEST:
        return None
    return "{" + ",".join(f'"{name}":{ratios[name]:.2f}' for name in sorted(ratios)) + "}"


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}"
