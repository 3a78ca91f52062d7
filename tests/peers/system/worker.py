"""The last agent of the system: it asks nobody."""

from __future__ import annotations

import asyncio

from links import options, serve_agent


async def main() -> None:
    """Serve until killed."""
    args = options()

    async def answer(text: str) -> str:
        await asyncio.sleep(args.seconds)
        return f"done: {text}"

    await serve_agent("worker", answer, args.calls)


if __name__ == "__main__":
    asyncio.run(main())
