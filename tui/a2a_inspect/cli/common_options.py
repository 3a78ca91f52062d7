"""Options that many commands have."""

import click

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, with stable names."
)
filter_option = click.option(
    "--filter",
    "-f",
    "where",
    default="",
    metavar="EXPR",
    help="Only exchanges that match: 'task:b2a4 err'.",
)
