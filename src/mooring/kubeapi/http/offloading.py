"""Work that takes long leaves the event loop: threads do it, and others are answered meanwhile."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
SMALL_BYTES = 64 * 1024
"""What is no larger is worked on at once."""
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="long-work")
"""Few, so that many large requests wait for each other and not everybody for them."""


async def offload(size: int, function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """The result of a function that only reads what it is given, for something of so many bytes."""
    if size <= SMALL_BYTES:
        return function(*arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, lambda: function(*arguments, **named))
