"""Calls the webhooks that requests to the embedded server wait for, over HTTP and HTTPS."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Sequence

import aiohttp
import msgspec

from muster.api.calls import JSON
from muster.apiserver.asking import Ask, Heard

LONGEST_ANSWER = 3 * 1024 * 1024
"""Bytes."""


class Caller:
    """One client for all webhooks. Belongs to the event loop; its connections are made when they are needed."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def ask(self, asks: Sequence[Ask]) -> list[Heard]:
        """Calls all at once; never raises, a call that fails is an answer that says why."""
        return list(await asyncio.gather(*map(self._heard, asks)))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _heard(self, ask: Ask) -> Heard:
        where = f'Post "{ask.url}"'
        try:
            return await self._called(ask)
        except TimeoutError:
            return Heard(failure=f"{where}: context deadline exceeded")
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as failure:
            return Heard(failure=f"{where}: {_reason(failure)}")

    async def _called(self, ask: Ask) -> Heard:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        body = msgspec.json.encode(ask.review)
        headers = {"Content-Type": JSON, "Accept": JSON, "User-Agent": "muster-admission"}
        secured = self._context(ask.ca_bundle) if ask.url.startswith("https:") and ask.ca_bundle else True
        named = ask.server_name or None
        posted = self._session.post(
            ask.url, data=body, headers=headers, ssl=secured, server_hostname=named, allow_redirects=False
        )
        async with asyncio.timeout(ask.timeout), posted as answer:
            if answer.status != 200:
                return Heard(failure=f"the server answered {answer.status} {answer.reason or ''}".rstrip())
            text = b""
            while more := await answer.content.read(LONGEST_ANSWER + 1 - len(text)):
                text += more
        if len(text) > LONGEST_ANSWER:
            return Heard(failure=f"the answer is longer than {LONGEST_ANSWER} bytes")
        return Heard(msgspec.json.decode(text))

    def _context(self, bundle: bytes) -> ssl.SSLContext:
        found = self._contexts.get(bundle)
        if found is None:
            found = self._contexts[bundle] = ssl.create_default_context(cadata=bundle.decode())
        return found


def _reason(failure: Exception) -> str:
    """Why a call failed, in words that do not depend on how it was made."""
    if not isinstance(failure, aiohttp.ClientConnectorError):
        return str(failure)
    cause = failure.os_error
    if isinstance(cause, ssl.SSLError):
        why = str(cause)
    else:  # asyncio says in strerror where it called; a name that is not found has a number of its own below zero
        number = cause.errno or 0
        why = os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return f"cannot connect to {failure.host}:{failure.port}: {why}"
