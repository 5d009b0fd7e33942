"""What a command that decides offline was given: manifests, or a cluster as it is now."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mooring.errors import InputError

if TYPE_CHECKING:
    from mooring.drivers.offline.reading import Inputs


def make_inputs(
    filename: list[str] | None,
    files: list[str] | None,
    kubeconfig: Path | None,
    *,
    config: Path | None,
    plugin: list[Path] | None,
    seed: int,
    then: list[str] | None,
    now: str | None,
    taken_on: list[str] | None,
    validate: Literal["strict", "warn", "ignore"],
    context: str | None = None,
    namespace: str = "",
    metrics: list[Path] | None = None,
) -> "Inputs":
    """Check what belongs together: manifests, which may go on in steps, or a cluster."""
    from mooring.drivers.offline.reading import Inputs, parse_now, parse_step

    given = [*(filename or ()), *(files or ())]
    kubeconfig = cluster_of(kubeconfig, given)
    if kubeconfig is None and not given:
        raise InputError("Missing option '--filename' / '-f', or '--kubeconfig' for a cluster (see mooring --help)")
    if kubeconfig is not None and (given or then):
        raise InputError("--kubeconfig: expected a cluster or manifests (-f, --then), found both")
    if context is not None and kubeconfig is None:
        raise InputError("--context: expected --kubeconfig with it, found none")
    at_first = parse_now(now) if now is not None else None
    if kubeconfig is not None and at_first is None:
        at_first = time.time()
    steps = tuple(parse_step(text) for text in then or ())
    return Inputs(
        given,
        config,
        tuple(plugin or ()),
        seed,
        steps,
        at_first,
        tuple(taken_on or ()),
        validate,
        kubeconfig,
        context,
        namespace,
        tuple(metrics or ()),
    )


def cluster_of(kubeconfig: Path | None, files: list[str]) -> Path | None:
    """The kubeconfig to use: the one that is named or, without any manifests, the one of $KUBECONFIG."""
    named = os.environ.get("KUBECONFIG", "")
    return kubeconfig if kubeconfig is not None or files or not named else Path(named)
