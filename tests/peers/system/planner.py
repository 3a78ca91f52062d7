"""The first agent of the system: it asks the broker, once two tasks are at work at the same
time."""

from __future__ import annotations

import asyncio

from links import SECONDS, ask, options, serve_agent

_TASKS = 2


async def main() -> None:
    """Serve until killed."""
    args = options()
    waiting = asyncio.Barrier(_TASKS)

    async def ask_broker(text: str) -> str:
        async with asyncio.timeout(SECONDS):
            await waiting.wait()
        return await ask(args.next, args.binding, text)

    await serve_agent("planner", ask_broker, args.calls)


if __name__ == "__main__":
    asyncio.run(main())
