"""`mooring snapshot`: a cluster as one file, for every command that reads manifests."""

import sys
from typing import Annotated

import typer

from mooring.cli.options import Cluster, Context, Quiet
from mooring.cli.output import warn


def snapshot(
    kubeconfig: Cluster = None,
    context: Context = None,
    hash_names: Annotated[
        bool,
        typer.Option("--hash-names", help="Put a hash in the place of each name, also where one object names another."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Print what scheduling reads of a cluster, as a List that every command takes with -f.

    Nothing is changed. Secrets and ConfigMaps are not read; of all other objects only the fields that scheduling reads
    are kept: no environment, no commands, no mounts. Labels and annotations are kept as they are.

    \b
    Example:
      mooring snapshot > cluster.json
      mooring snapshot --kubeconfig ~/.kube/config --hash-names > cluster.json
      mooring schedule -f cluster.json
    """
    import msgspec

    from mooring.drivers.live.watching.snapshot import documents, take

    objects, warnings = take(kubeconfig, context)
    items = documents(objects, hash_names=hash_names)
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    sys.stdout.write(msgspec.json.format(text, indent=1).decode() + "\n")
    warn(warnings, quiet=quiet)
