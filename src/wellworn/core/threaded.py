"""Async faces of synchronous classes: each method is derived, not written again.

    class AsyncThing(AsyncFace[Thing]):
        work = threaded(Thing.work)      # await AsyncThing(thing).work(…) runs thing.work(…) on a worker thread

Types follow the synchronous signature. A test per face checks that no public method is missing.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


class AsyncFace(Generic[S]):
    """Awaits the methods of one object, which it holds as `sync`."""

    def __init__(self, sync: S) -> None:
        self.sync = sync


def threaded(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method as a coroutine function of an `AsyncFace`, so that the event loop is never held up."""

    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:  # an AsyncFace, whatever its class
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    functools.update_wrapper(call, method)
    return call
