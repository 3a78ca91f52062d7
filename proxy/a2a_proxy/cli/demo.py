"""`a2a-proxy demo`: the built-in agent and client, with the real relay and recorder between
them."""

from pathlib import Path

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import proxy_config
from a2a_proxy.cli.run import ProxyRun
from a2a_proxy.relay.run import run_loop


def run_demo(record: Path | None, *, lossy: bool = False) -> int:
    """Record the demo, with a lossy agent if requested, and return the exit code."""
    return run_loop(_record_demo(record, lossy))


async def _record_demo(record: Path | None, lossy: bool) -> int:
    # Imported here, because neither the relay nor `--help` should wait for aiohttp and grpc.
    from a2a_proxy.demo.agent import DemoAgent
    from a2a_proxy.demo.client import DemoClient

    agent = DemoAgent(lossy=lossy)
    await agent.start()
    arguments = ProxyArguments(
        listen=("127.0.0.1:0",),
        upstream=(f"127.0.0.1:{agent.http_port}",),
        upstream_grpc=(f"127.0.0.1:{agent.grpc_port}",),
        record=record,
    )

    async def talk(addresses: list[str]) -> None:
        await DemoClient(addresses[0]).run(lossy=lossy)

    try:
        return await ProxyRun(proxy_config(arguments), talk).run()
    finally:
        await agent.stop()
