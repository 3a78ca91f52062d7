"""`python -m a2a_proxy.testing.child`: orders on stdin, answers on stdout, until stdin ends.

Output of libraries goes to stderr, because stdout is for answers only.
"""

import asyncio
import os
import sys
from typing import IO

from a2a_proxy.relay.run import run_loop
from a2a_proxy.testing.child.agents import CommandDispatcher
from a2a_proxy.testing.child_messages import decode_order, encode


async def _serve_orders(answers: IO[bytes]) -> None:
    dispatcher = CommandDispatcher()
    orders = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    try:
        while line := await orders.readline():
            answers.write(encode(await dispatcher.run_order(decode_order(line))) + b"\n")
            answers.flush()
    finally:
        await dispatcher.close()


def main() -> None:
    """Serve until the process of the tests closes the pipe or exits."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    run_loop(_serve_orders(answers))


if __name__ == "__main__":
    main()
