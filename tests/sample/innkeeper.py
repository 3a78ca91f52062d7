"""The live agent of the sample, in a process of its own: prints the port for HTTP, and ends when
its stdin does."""

from __future__ import annotations

import asyncio
import sys

from a2a_proxy.demo.agent import DemoAgent


async def main() -> None:
    """Serve."""
    agent = DemoAgent()
    await agent.start()
    print(agent.http_port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await agent.stop()


if __name__ == "__main__":
    asyncio.run(main())
