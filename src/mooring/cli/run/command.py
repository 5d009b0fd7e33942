"""`mooring run`: schedule a real cluster."""

import gc
import logging
import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from mooring.cli.options import Config, PluginFiles, Seed
from mooring.errors import InputError
from mooring.observe.logs import start_logging

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="How to reach the cluster. Default: $KUBECONFIG, ~/.kube/config, or what a pod is given by its node.",
    ),
]


class RunCommand(TyperCommand):
    """kube-scheduler's flags as kube-scheduler reads them: a bare `--leader-elect` is true, and takes no word along."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--leader-elect=true" if each == "--leader-elect" else each for each in args])


def run(
    kubeconfig: Kubeconfig = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig to use.")] = None,
    master: Annotated[str | None, typer.Option(metavar="URL", help="The API server, if not the kubeconfig's.")] = None,
    config: Config = None,
    plugin: PluginFiles = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An InstanceTypeCatalogue: nodes are bought from the NodePools, by NodeClaims. Default: none are.",
            show_default=False,
        ),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The schedulerName of the pods to take on, instead of the profile's; may be repeated.",
        ),
    ] = None,
    leader_elect: Annotated[
        str | None,
        typer.Option(
            metavar="[=true|false]", help="Whether to wait until no other scheduler holds the lease. Default: true."
        ),
    ] = None,
    leader_elect_resource_lock: Annotated[
        str | None, typer.Option(metavar="leases", help="The kind of the lease: there is no other any more.")
    ] = None,
    leader_elect_resource_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The lease. Default: kube-scheduler in its place, else our own name."),
    ] = None,
    leader_elect_resource_namespace: Annotated[str | None, typer.Option(metavar="NAMESPACE")] = None,
    leader_elect_lease_duration: Annotated[str | None, typer.Option(metavar="DURATION")] = None,
    leader_elect_renew_deadline: Annotated[str | None, typer.Option(metavar="DURATION")] = None,
    leader_elect_retry_period: Annotated[str | None, typer.Option(metavar="DURATION")] = None,
    only_namespace: Annotated[
        list[str] | None, typer.Option(metavar="NAMESPACE", help="Take on pods of this namespace alone; repeatable.")
    ] = None,
    only_priority_class: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Take on pods of this PriorityClass alone; repeatable.")
    ] = None,
    node_pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=VALUE",
            help="Use the nodes with this label alone; may be repeated: any value of a label, but of each label one.",
        ),
    ] = None,
    share_nodes: Annotated[
        bool,
        typer.Option("--share-nodes", help="Experimental: other active schedulers of Mooring use these nodes."),
    ] = False,
    remember_as: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Keep what must outlive a restart under this name, which no other active scheduler has. "
            "Default: the lease, or our own name where no other can have it.",
        ),
    ] = "",
    health_address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where /livez, /readyz, /metrics and /configz answer to anybody, by plain HTTP. Default: nowhere.",
        ),
    ] = "",
    secure_address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where they answer by TLS; /metrics and /configz to those whom the API server lets read them.",
        ),
    ] = "",
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The certificate of --secure-address. Default: one made for this process."),
    ] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key.")] = None,
    decision_log: Annotated[
        str, typer.Option(metavar="FILE", help="Append every decision as a line of JSON; - for standard output.")
    ] = "",
    dashboard_address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where the dashboard is served: on a loopback address to everybody there, elsewhere to users of the "
            "cluster, by their tokens. Default: nowhere.",
        ),
    ] = "",
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Decide beside the present scheduler and change nothing; takes pods of default-scheduler, unless "
            "--scheduler-name gives others.",
        ),
    ] = False,
    shadow_log: Annotated[
        str,
        typer.Option(metavar="FILE", help="With --shadow: append each comparison, for `mooring shadow report`."),
    ] = "",
    shadow_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="With --shadow: how long a decision is assumed that nothing confirms."),
    ] = 60.0,
    seed: Seed = 0,
    logging_format: Annotated[
        Literal["text", "json"], typer.Option(help="Log lines for people, or one JSON object a line.")
    ] = "text",
    verbose: Annotated[
        int, typer.Option("-v", "--v", help="How much to log: 0 warnings, 1 what happens, 4 every decision too.")
    ] = 1,
) -> None:
    """Schedule a real cluster: beside kube-scheduler, for pods that name this one, or in its place.

    \b
    Example:
      mooring run --kubeconfig ~/.kube/config --scheduler-name mooring
      mooring run --config scheduler-config.yaml --leader-elect=false
      mooring run --shadow --shadow-log shadow.jsonl
    """
    gc.disable()  # what is imported stays, and so does the cluster that is read next: `Run` enables it when it is
    from mooring.drivers.live.run import RunSettings
    from mooring.drivers.live.run import run as schedule
    from mooring.drivers.live.shadow.run import ShadowSettings, run_shadow
    from mooring.drivers.live.watching.shard import Shard

    level = logging.WARNING if verbose <= 0 else logging.INFO if verbose < 4 else logging.DEBUG
    start_logging(level, logging_format)
    names = tuple(scheduler_name or ())
    if leader_elect_resource_lock not in (None, "leases"):
        raise InputError(f"--leader-elect-resource-lock: expected leases, found {leader_elect_resource_lock!r}")
    if dashboard_address and master is not None:
        raise InputError("--dashboard-address: expected the server of a kubeconfig with it, found --master")
    election = {
        "leader_elect": None if leader_elect is None else _is_true("--leader-elect", leader_elect),
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
    }
    if shadow_log and not shadow:
        raise InputError("--shadow-log: expected --shadow beside it, found none")
    begin = partial(run_shadow, shadow=ShadowSettings(shadow_log, shadow_timeout)) if shadow else schedule
    begin(
        RunSettings(
            kubeconfig,
            context,
            master,
            config,
            tuple(plugin or ()),
            catalogue,
            names,
            {name: given for name, given in election.items() if given is not None},
            shard=Shard(
                frozenset(only_namespace or ()),
                frozenset(only_priority_class or ()),
                tuple(_label("--node-pool", text) for text in node_pool or ()),
            ),
            shares_nodes=share_nodes,
            remember_as=_name("--remember-as", remember_as),
            health_address=health_address,
            secure_address=secure_address,
            tls_certificate=tls_cert_file,
            tls_key=tls_private_key_file,
            decision_log=decision_log,
            dashboard_address=dashboard_address,
            seed=seed,
        )
    )


def _is_true(option: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InputError(f"{option}: expected true or false, found {text!r}")
    return text == "true"


def _name(option: str, text: str) -> str:
    if text and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text):
        raise InputError(f"{option}: expected lower case letters, digits, '-' and '.', found {text!r}")
    return text


def _label(option: str, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise InputError(f"{option}: expected LABEL=VALUE, found {text!r}")
    return key, value
