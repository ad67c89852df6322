"""What a scheduler process answers over HTTP: whether it is well, what it counts, why something waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from aiohttp import web

from muster.runtime import pages
from muster.runtime.http import is_loopback, neighbours_only
from muster.runtime.remote.session import Session
from muster.scheduler.metrics import Sample, exposed

PROBES = ("/healthz", "/livez", "/readyz")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Guard = Callable[[web.Request], bool]


def application(session: Callable[[], Session], guard: Guard | None) -> web.Application:
    """Probes for whoever can reach them; all else for this machine (`guard` None), or for those whom `guard` knows."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        return _checked(checks(session()), verbose="verbose" in request.query)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=exposed(samples(session())), content_type="text/plain", charset="utf-8")

    async def elsewhere(_: web.Request) -> web.Response:
        why = f"this is a scheduler, which knows what waits and why; objects are at {session().transport.server}"
        return web.json_response({"kind": "Status", "status": "Failure", "message": why, "code": 404}, status=404)

    app = web.Application(middlewares=[_only_known(guard)])
    app.router.add_routes([web.get("/healthz", healthz), web.get("/livez", healthz), web.get("/readyz", readyz)])
    app.router.add_get("/metrics", metrics)
    others = lambda: session().employed[1:]  # noqa: E731
    app.router.add_routes(pages.routes(lambda: session().employed[0], others, metrics=False))
    app.router.add_route("*", "/{path:.*}", elsewhere)
    return app


def _only_known(guard: Guard | None) -> Any:
    @web.middleware
    async def known(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in PROBES:
            return await handler(request)
        if guard is None:
            if not is_loopback(request.remote or ""):
                return web.Response(status=403, text="only the probes are for other machines")
            answer: web.StreamResponse = await neighbours_only(request, handler)
            return answer
        if not guard(request):
            return web.Response(status=401, text="Unauthorized", headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return known


def checks(session: Session) -> dict[str, str]:
    """What has to be so for it to be ready, and what is wrong with it; "": nothing. A standby is ready, too."""
    unlisted = session.remote.unlisted
    refused = [text for (verb, _), text in session.remote.refusals.standing.items() if verb in ("list", "watch")]
    return {
        "listed": f"not listed yet: {', '.join(unlisted)}" if unlisted else "",
        "heard": "" if unlisted or session.heard else "what was listed is not taken in yet",
        "server": "" if session.transport.reached is not False else "cannot be reached",
        "allowed": "; ".join(refused),
    }


def _checked(found: dict[str, str], *, verbose: bool) -> web.Response:
    wrong = any(found.values())
    if not verbose and not wrong:
        return web.Response(text="ok")
    lines = [f"[{'-' if why else '+'}]{name} {f'failed: {why}' if why else 'ok'}" for name, why in found.items()]
    lines.append("readyz check failed" if wrong else "readyz check passed")
    return web.Response(status=503 if wrong else 200, text="\n".join(lines) + "\n")


def samples(session: Session) -> Iterator[Sample]:
    """The schedulers' own, then those of the client."""
    yield from _of_schedulers(session)
    counts, remote = session.transport.counts, session.remote
    for (method, code), number in sorted(counts.requests.items()):
        yield Sample("rest_client_requests_total", (("code", code), ("method", method)), number, "counter")
    yield Sample("rest_client_request_retries_total", (), counts.retries, "counter")
    yield Sample("muster_client_credential_renewals_total", (), counts.renewals, "counter")
    yield Sample("muster_client_writes_under_way", (), remote.writes, "gauge")
    yield Sample("muster_client_events_dropped_total", (), remote.dropped_events, "counter")
    for what in ("lists", "watches", "failures", "relists", "events"):
        for name, reflector in sorted(remote.reflectors.items()):
            value = getattr(reflector.tally, what)
            yield Sample(f"muster_reflector_{what}_total", (("resource", name),), value, "counter")
    for name, reflector in sorted(remote.reflectors.items()):
        yield Sample("muster_reflector_objects", (("resource", name),), len(reflector.objects), "gauge")
    if session.duty.terms is not None:
        name = session.duty.terms.name
        yield Sample("leader_election_master_status", (("name", name),), int(session.leads), "gauge")


def _of_schedulers(session: Session) -> Iterable[Sample]:
    """Those of all profiles, family by family; what has no profile in its labels is summed up."""
    found: dict[str, dict[tuple[tuple[str, str], ...], Sample]] = {}
    for one in session.employed:
        scheduler = one.scheduler
        pending = [(entry, len(scheduler.queue.pending(key))) for key, entry in scheduler.queue.entries.items()]
        for sample in scheduler.metrics.samples(pending):
            known = found.setdefault(sample.name, {}).get(sample.labels)
            total = sample if known is None else sample._replace(value=sample.value + known.value)
            found[sample.name][sample.labels] = total
    return [sample for family in found.values() for sample in family.values()]
