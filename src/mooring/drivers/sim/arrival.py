"""What comes to a simulated cluster: a job as traces and distributions know it, before it is an object of any kind."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job: so many equal pods that arrive together."""

    time: float
    """Seconds since the start of the simulation."""
    name: str
    """Unique within its namespace; the object is called so, and its pods begin with it."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """What each pod asks for, as Kubernetes writes it: {"cpu": "500m", "nvidia.com/gpu": "1"}."""
    pods: int = 1
    duration: float = math.inf
    """Seconds that each pod runs; without end if nobody knows."""
    queue: str = ""
    """The queue that it is submitted to, if any; which kind of queue, the scenario says (`as`)."""
    priority: int = 0
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    node_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By label, the values of which a node must have one."""


Options = Mapping[str, Any]
"""What the scenario says under `options`, unknown to anyone but the reader."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A form in which the world's traces come: how its files are read.

    Readers yield in order of time, refuse what they cannot read with a ConfigError whose file is `PATH: line N`, and
    refuse options that they do not know.
    """

    read_work: Callable[[Path, Options], Iterator[Arrival]] | None = None
    """Reads a list of jobs or pods."""
    read_nodes: Callable[[Path, Options], Iterator[dict[str, Any]]] | None = None
    """Reads a list of nodes, each as its manifest."""
