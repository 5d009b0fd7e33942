"""The options that commands share."""

import enum
from pathlib import Path
from typing import Annotated, Literal

import typer


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="Manifests: a file, a folder, or - for standard input."),
]
Cluster = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Read a cluster as it is now, in place of manifests. Without either: $KUBECONFIG, if it is set.",
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Ask about this namespace; all of them count.")
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The context of the kubeconfig, if not its current one.")
]
MoreFiles = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="More manifests.", show_default=False)]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the result.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="A KubeSchedulerConfiguration, or a ConfigMap with one: profiles and plugins."
    ),
]
PluginFiles = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="A Python file with plugins of your own; may be repeated."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Breaks ties between equally good nodes.")]
Then = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[DURATION:]FILE",
        help="What happens next: manifests to apply over those before, a minute later unless it says 10m:FILE; "
        "one with a deletionTimestamp takes its object away. May be repeated.",
    ),
]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="What time it is at first, such as 2026-03-02T12:00:00Z. Default: the last moment that the first "
        "manifests speak of, 1970-01-01T00:00:00Z if of none.",
    ),
]
Metrics = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="What was measured, for load-aware plugins: NodeMetrics and PodMetrics, Koordinator's NodeMetric, "
        "load-watcher's JSON, or the metrics of DCGM exporter.",
    ),
]
TakenOn = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="SCHEDULER",
        help="Place pods too that ask for this schedulerName, such as volcano, as those of the first profile; "
        "may be repeated.",
    ),
]
Validate = Annotated[
    Literal["strict", "warn", "ignore"],
    typer.Option(help="Unknown fields and duplicate keys are mistakes, cause warnings, or do not matter."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no remarks, just the result.")]
