"""Options of spans on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from a2a_proxy.cli.arguments import SpanArguments
from a2a_proxy.cli.options import add_options
from a2a_proxy.cli.span_options import parse_span_options, span_option_words
from a2a_proxy.model.errors import UserError
from a2a_proxy.telemetry.span_options import SpanOptions

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("typed", "seconds"), [("10s", 10), ("5m", 300), ("1.5h", 5400), ("1 d", 86_400), ("", 0)]
)
def test_a_segment_length_is_a_duration(typed: str, seconds: int) -> None:
    assert parse_span_options("internal", content=False, compat=(), segment=typed) == SpanOptions(
        segment=seconds * SECOND
    )


@pytest.mark.parametrize("typed", ["9s", "0m", "5", "m", "5x", "-5m", "\u0665m", "9" * 30 + "s"])
def test_an_invalid_segment_length_is_refused(typed: str) -> None:
    with pytest.raises(UserError, match=r"^--segment: .* is (not a duration|too short)"):
        parse_span_options("internal", content=False, compat=(), segment=typed)


def test_printed_options_parse_to_the_same_span_options() -> None:
    made = parse_span_options(
        "server", content=True, compat=("kong", "langfuse", "kong"), segment="5m"
    )

    @click.command()
    @click.option("--span-kind", type=click.Choice(["internal", "server"]))
    @add_options(SpanArguments)
    def offline(span_kind: str, content: bool, compat: tuple[str, ...], segment: str) -> None:
        again = parse_span_options(span_kind, content=content, compat=compat, segment=segment)  # type: ignore[arg-type]
        click.echo(str(again == made))

    assert CliRunner().invoke(offline, span_option_words(made)).output == "True\n"
    assert span_option_words(SpanOptions()) == []
    for odd in (SpanOptions(segment=10 * SECOND + 1), SpanOptions(segment=2**63 - 1)):
        assert (
            parse_span_options(
                "internal", content=False, compat=(), segment=span_option_words(odd)[-1]
            )
            == odd
        )
