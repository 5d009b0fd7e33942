"""`mooring capacity`: which nodes to buy for the pods that wait, and which nodes could go."""

from pathlib import Path
from typing import Annotated

import typer

from mooring.cli.inputs import make_inputs
from mooring.cli.options import (
    Config,
    Files,
    Format,
    MoreFiles,
    Now,
    Output,
    PluginFiles,
    Quiet,
    Seed,
    TakenOn,
    Validate,
)
from mooring.cli.output import make_console, print_data, remark_ignored, warn
from mooring.cli.progress import ProgressBar


def capacity(
    filename: Files = None,
    files: MoreFiles = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An InstanceTypeCatalogue: what nodes can be bought, where, and at which prices.",
            show_default=False,
        ),
    ] = None,
    spot_to_spot: Annotated[
        bool, typer.Option("--spot-to-spot", help="Let spot nodes be replaced by cheaper spot nodes.")
    ] = False,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    now: Now = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    quiet: Quiet = False,
) -> None:
    """Decide as `mooring schedule` does, then say what to buy and what could go, as Karpenter would.

    For pods that wait: which nodes to buy from the NodePools, for which pods, and what that costs an hour. For nodes
    that Karpenter launched: which could go, what that saves, where their pods would go, and why the others stay.

    \b
    Example:
      mooring capacity -f examples/capacity/cluster.yaml --catalogue examples/capacity/catalogue.yaml
      mooring capacity -f cluster.yaml --catalogue catalogue.yaml -o json
    """
    from mooring.config.catalogue import load_catalogue
    from mooring.drivers.offline.reading import read
    from mooring.errors import InputError
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.capacity import check_pools, make_capacity_result, situation_of

    if catalogue is None:
        raise InputError("Missing option '--catalogue' (see mooring capacity --help)")
    instance_types = load_catalogue(catalogue)
    inputs = make_inputs(
        filename,
        files,
        None,
        config=config,
        plugin=plugin,
        seed=seed,
        then=None,
        now=now,
        taken_on=taken_on,
        validate=validate,
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            check_pools(loaded.manifests)
            offline = loaded.begin()
            offline.decide(progress)
            progress.phase("planning nodes")
            situation = situation_of(
                offline.scheduler, loaded.manifests, instance_types, offline.now, spot_to_spot=spot_to_spot
            )
            result = make_capacity_result(situation)
        if output is Format.TABLE:
            from mooring.cli.capacity.table import print_capacity

            print_capacity(make_console(), result)
        else:
            print_data(result, output, "Capacity")
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
