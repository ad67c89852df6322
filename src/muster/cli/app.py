"""All commands with their options. Bodies import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.failure import FAILED, Failure, complain, not_a_segment

LOOPBACK = "127.0.0.1"
app = typer.Typer(
    name="muster",
    help="Workload-aware scheduler for Kubernetes accelerators: gangs start whole, or say why they wait.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Server = Annotated[
    str | None,
    typer.Option(
        "--server", help="API server; default $MUSTER_SERVER, else http://127.0.0.1:7077.", show_default=False
    ),
]


def _namespace(given: str | None) -> str | None:
    fault = "" if given is None else not_a_segment(given)
    if fault:
        raise typer.BadParameter(fault)
    return given


Namespace = Annotated[
    str, typer.Option("--namespace", "-n", callback=_namespace, help="Namespace of what names none itself.")
]
Everywhere = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Objects of every namespace.")]
Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="YAML or JSON file, directory, or - for standard input.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


Data = Annotated[
    Path | None,
    typer.Option(help="Directory in which everything is kept; without it, nothing is.", show_default=False),
]


Host = Annotated[str, typer.Option(help="Address to listen on; others than loopback need TLS and known clients.")]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="Certificate (chain), PEM.", show_default=False)]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="Its key, PEM, unencrypted.", show_default=False)]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="Bearer tokens of clients, one a line.", show_default=False)
]
ClientCa = Annotated[
    Path | None,
    typer.Option("--client-ca", help="CA whose client certificates are let in, PEM.", show_default=False),
]


class Over(StrEnum):
    sim = "sim"
    http = "http"


def run(arguments: list[str] | None = None) -> int:
    """Runs one command line (the process's own if none is given); returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _give_up_output()
        if not isinstance(error, BrokenPipeError):  # whoever read our output is gone: say nothing more
            what = "the output cannot be written" if error.filename is None else error.filename
            complain(f"{what}: {error.strerror or error}")
        return FAILED


def _run(arguments: list[str] | None) -> int:
    try:
        app(args=arguments, prog_name="muster")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except Failure as failure:
        complain(str(failure))
        return failure.code
    return 0


def _give_up_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not stumble over it when it ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@app.command()
def demo() -> None:
    """Place a 1,024-accelerator training job on a simulated cluster, lose a rack, go on smaller."""
    from muster.cli.demo.play import play

    raise SystemExit(play())


@app.command()
def up(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7077,
    host: Host = LOOPBACK,
    zones: Annotated[int | None, typer.Option(help="Zones of the hollow fleet; 2 if left out.")] = None,
    racks: Annotated[int | None, typer.Option(help="Racks in each zone; 2 if left out.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes in each rack; 4 if left out.")] = None,
    gpus: Annotated[int | None, typer.Option(help="Accelerators (nvidia.com/gpu) on each node; 8 if left out.")] = None,
    fleet: Annotated[
        Path | None, typer.Option(help="Take the nodes from this manifest file instead.", show_default=False)
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,NAME=false,...; the workload-aware gates are on already.")
    ] = "",
    target: Annotated[str, typer.Option(help="Kubernetes release whose rules hold: 1.37 or 1.38.")] = "1.37",
    profile: Annotated[Path | None, typer.Option(help="Scheduler profile file.", show_default=False)] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Also write a kubeconfig file for kubectl and clients.", show_default=False)
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision to standard error.")] = False,
    data: Data = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    token_file: TokenFile = None,
    client_ca: ClientCa = None,
    control: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run an embedded cluster (API server, controllers, scheduler, hollow nodes) until Ctrl-C."""
    from muster.cli import up as command
    from muster.runtime.guard import Exposure

    if control:
        raise SystemExit(command.run_controlled(port, data))
    where = Exposure(host, tls_cert, tls_key, client_ca, token_file)
    sizes = zones, racks, nodes, gpus
    wanted = command.Wanted(port, sizes, fleet, feature_gates, target, profile, kubeconfig, verbose, data, where)
    raise SystemExit(command.run(wanted))


@app.command("api-server")
def api_server(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7077,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need TLS and known clients.")
    ] = "127.0.0.1",
    data: Data = None,
    controllers: Annotated[
        str, typer.Option(help="Controllers that run: NAME,NAME,..., all, or nothing.", show_default=False)
    ] = "",
    feature_gates: Annotated[
        str, typer.Option(help="NAME=true,NAME=false,...; the workload-aware gates are on already.")
    ] = "",
    target: Annotated[str, typer.Option(help="Kubernetes release whose rules hold: 1.37 or 1.38.")] = "1.37",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    token_file: TokenFile = None,
    client_ca: ClientCa = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Also write a kubeconfig file; without credentials, for loopback.", show_default=False),
    ] = None,
) -> None:
    """Run the API server alone: no scheduler, no hollow nodes, and only the controllers that are named."""
    from muster.cli import api_server as command

    where = command.Exposure(host, tls_cert, tls_key, client_ca, token_file)
    raise SystemExit(command.run(command.Wanted(port, where, data, controllers, feature_gates, target, kubeconfig)))


@app.command()
def scheduler(
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig file of the server.", show_default=False)] = None,
    context: Annotated[str | None, typer.Option(help="Context in it; its current one.", show_default=False)] = None,
    in_cluster: Annotated[bool, typer.Option("--in-cluster", help="As the service account of this pod.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="Configuration file, in Muster's or kube-scheduler's form.", show_default=False),
    ] = None,
    scheduler_name: Annotated[
        str | None, typer.Option(help="schedulerName of the pods to place; muster if left out.", show_default=False)
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Scheduler profile file.", show_default=False)] = None,
    leader_elect: Annotated[
        bool | None, typer.Option(help="Whether one of several leads; yes if left out.", show_default=False)
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to answer on; beyond loopback only probes without TLS and known clients.")
    ] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7078,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    token_file: TokenFile = None,
    client_ca: ClientCa = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision.")] = False,
) -> None:
    """Place pods on an API server that runs elsewhere, beside kube-scheduler or instead of it."""
    from muster.cli import scheduler as command

    access = command.Door(kubeconfig, context, in_cluster)
    where = command.Exposure(host, tls_cert, tls_key, client_ca, token_file)
    raise SystemExit(
        command.run(command.Wanted(access, config, scheduler_name, profile, leader_elect, where, port, verbose))
    )


@app.command()
def apply(filename: Files = None, namespace: Namespace = "default", server: Server = None) -> None:
    """Create what the files describe, or merge it into what exists."""
    from muster.cli import objects

    raise SystemExit(objects.apply(filename or [], namespace, server))


@app.command()
def get(
    kind: Annotated[str, typer.Argument(help="Kind: pods, pg, nodes, jobs, ...; or KIND/NAME.")],
    names: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="How to print: table, yaml, json, name; of groups also tree.")
    ] = "table",
    namespace: Namespace = "default",
    everywhere: Everywhere = False,
    selector: Annotated[str, typer.Option("--selector", "-l", help="Label selector: app=a,tier!=b.")] = "",
    server: Server = None,
) -> None:
    """Print objects."""
    from muster.cli import objects

    target = objects.Target(kind, names or [], None if everywhere else namespace)
    raise SystemExit(objects.get(target, output, selector, server))


@app.command()
def delete(
    kind: Annotated[str | None, typer.Argument(help="Kind, or KIND/NAME.", show_default=False)] = None,
    names: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
    filename: Files = None,
    namespace: Namespace = "default",
    server: Server = None,
) -> None:
    """Delete objects by name, or what the files describe."""
    from muster.cli import objects

    raise SystemExit(objects.delete(kind, names or [], filename or [], namespace, server))


@app.command()
def explain(
    what: Annotated[
        str | None,
        typer.Argument(
            help="podgroup/NAME, pod/NAME, job/NAME, or a NAME; nothing: all that wait.", show_default=False
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="NAME, after a kind.", show_default=False)] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            callback=_namespace,
            help="Only this namespace; with a name, default.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
) -> None:
    """Say why a group or pod waits, and what would change that."""
    from muster.cli import explain as command

    raise SystemExit(command.explain(what, name, namespace, as_json, server))


@app.command()
def build(
    filename: Files = None,
    why: Annotated[bool, typer.Option("--explain", help="Say why each object is as it is.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="yaml or json.")] = "yaml",
    namespace: Namespace = "default",
) -> None:
    """Print the scheduling objects of Jobs, JobSets, LeaderWorkerSets, RayClusters, TrainJobs and others."""
    from muster.cli import build as command

    raise SystemExit(command.build(filename or [], namespace, output, why))


@app.command()
def conformance(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Case files or directories.")],
    over: Annotated[Over, typer.Option(help="Virtual time in process, or a server process over HTTP.")] = Over.sim,
    area: Annotated[str, typer.Option(help="Only cases of this area.")] = "",
    needs: Annotated[
        str | None, typer.Option(help="Only cases whose needs are among these: a,b.", show_default=False)
    ] = None,
    target: Annotated[str, typer.Option(help="Kubernetes release that is held to: 1.37 or 1.38.")] = "1.37",
    data: Annotated[
        Path | None,
        typer.Option(help="With --over http, keep each case's cluster in here, durably.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run conformance cases; exit 1 if one fails."""
    from muster.cli import measured

    wanted = None if needs is None else [name for name in needs.split(",") if name]
    raise SystemExit(measured.conformance(paths, over.value, area or None, wanted, target, as_json, data))


@app.command()
def bench(
    shapes: Annotated[list[str] | None, typer.Argument(metavar="SHAPE...", show_default=False)] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Size of the cluster.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Measure named workload shapes against their targets; exit 1 below one. Without SHAPE: all of them."""
    from muster.cli import measured

    raise SystemExit(measured.bench(shapes or [], nodes, as_json))


@app.command()
def version() -> None:
    """Print the version and the Kubernetes release whose scheduling API is served."""
    from importlib.metadata import version as installed

    print(f"muster {installed('muster-scheduler')} (scheduling API of Kubernetes v1.37)")
