"""`mooring capacity`: which nodes to buy for the pods that wait, and which nodes could go."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.inputs import make_inputs
from mooring.cli.options import (
    Cluster,
    Config,
    Context,
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

if TYPE_CHECKING:
    from mooring.report.node_groups import NodeGroupsResult


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
    node_groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Node groups, or MachineDeployments of Cluster API: decide as the Cluster Autoscaler.",
            show_default=False,
        ),
    ] = None,
    autoscaler_flag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FLAG",
            help="With --node-groups: a flag of the Cluster Autoscaler, such as --expander=least-waste; repeatable.",
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
    kubeconfig: Cluster = None,
    context: Context = None,
    quiet: Quiet = False,
) -> None:
    """Decide as `mooring schedule` does, then say what to buy and what could go, as Karpenter would.

    For pods that wait: which nodes to buy from the NodePools, for which pods, and what that costs an hour. For nodes
    that Karpenter launched: which could go, what that saves, where their pods would go, and why the others stay. With
    --node-groups, the same as the Cluster Autoscaler has it. Nothing is bought or given back.

    \b
    Example:
      mooring capacity -f examples/capacity/cluster.yaml --catalogue examples/capacity/catalogue.yaml
      mooring capacity -f cluster.yaml --catalogue catalogue.yaml -o json
      mooring capacity --kubeconfig ~/.kube/config --catalogue catalogue.yaml
      mooring capacity -f cluster.yaml --node-groups groups.yaml --autoscaler-flag=--expander=least-waste
    """
    from mooring.config.catalogue import load_catalogue
    from mooring.drivers.offline.reading import read
    from mooring.errors import InputError
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.capacity import check_pools, make_capacity_result, situation_of

    if (catalogue is None) == (node_groups is None):
        found = "neither" if catalogue is None else "both"
        raise InputError(f"expected --catalogue or --node-groups, found {found} (see mooring capacity --help)")
    if autoscaler_flag and node_groups is None:
        raise InputError("--autoscaler-flag: expected --node-groups with it, found none")
    instance_types = load_catalogue(catalogue) if catalogue is not None else ()
    inputs = make_inputs(
        filename,
        files,
        kubeconfig,
        config=config,
        plugin=plugin,
        seed=seed,
        then=None,
        now=now,
        taken_on=taken_on,
        validate=validate,
        context=context,
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            groups: NodeGroupsResult | None = None
            if node_groups is not None:
                from mooring.cli.capacity.groups import plan, print_groups

                groups = plan(loaded, node_groups, autoscaler_flag or [], progress)
            else:
                check_pools(loaded.manifests)
                offline = loaded.begin()
                offline.decide(progress)
                progress.phase("planning nodes")
                situation = situation_of(
                    offline.scheduler, loaded.manifests, instance_types, offline.now, spot_to_spot=spot_to_spot
                )
                result = make_capacity_result(situation)
        if output is not Format.TABLE:
            if groups is not None:
                print_data(groups, output, "NodeGroups")
            else:
                print_data(result, output, "Capacity")
        elif groups is not None:
            print_groups(make_console(), groups)
        else:
            from mooring.cli.capacity.table import print_capacity

            print_capacity(make_console(), result)
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
