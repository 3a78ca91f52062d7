"""`a2a-inspect card`."""

from typing import Any

import click

from a2a_inspect.cli.report_options import add_report_options


@click.command("card")
@click.argument("source", metavar="URL|FILE", type=click.Path(allow_dash=True))
@click.option(
    "--probe", is_flag=True, help="Send each declared interface one GetTask of a random id."
)
@add_report_options
def card(source: str, **options: Any) -> int:
    """Check one agent card without a recording.

    A URL without a path is tried at /.well-known/agent-card.json and then at the older path
    agent.json. FILE - is standard input. Rules that need more than the card are not run.

    --probe sends requests to every host that the card names, without credentials; the expected
    answer is that the task does not exist.

    \b
    Exit code: 0 no finding is severe enough, 1 at least one is, 2 there is no
    card to check.
    """
    import time

    from a2a_inspect.commands.card.run import CardOptions, run_card

    return run_card(source, CardOptions(**options), time.time_ns())
