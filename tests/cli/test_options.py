"""Options of commands from structs that declare them."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.main import cli
from a2a_proxy.cli.options import add_options, option_sections, option_words
from a2a_proxy.cli.recorder_config import make_session_file, recorder_options
from a2a_proxy.model.option import Option


@dataclass(frozen=True, kw_only=True)
class Base:
    last: Annotated[bool, Option(help="Last.", section="One")] = False


@dataclass(frozen=True, kw_only=True)
class Example(Base):
    texts: Annotated[tuple[str, ...], Option(help="Texts.", section="One", short="-t")] = ()
    word: Annotated[Literal["a", "b"], Option(help="Word.", section="Two", commands=("x",))] = "a"
    file: Annotated[Path | None, Option(help="File.", flag="--path")] = None
    number: Annotated[float, Option(help="Number.", minimum=1)] = 2.0
    maybe: Annotated[str | None, Option(help="Maybe.", flag_value="")] = None


@click.command()
@add_options(Example)
@click.pass_context
def example(context: click.Context, /, **typed: object) -> None:
    click.echo(repr(Example(**typed)))  # type: ignore[arg-type]
    click.echo(option_words(context))


def invoke(*words: str, **environment: str) -> tuple[str, str]:
    done = CliRunner().invoke(example, list(words), env=environment)
    assert not done.exception, done.output
    made, again = done.output.splitlines()
    return made, again


def test_values_and_defaults_are_those_of_the_struct() -> None:
    assert invoke() == (repr(Example()), "[]")
    words = ("-t", "1", "--texts", "2", "--word", "b", "--path", "/p", "--number", "3", "--last")
    made, again = invoke(*words, "--maybe")
    assert made == repr(
        Example(texts=("1", "2"), word="b", file=Path("/p"), number=3.0, last=True, maybe="")
    )
    assert invoke(*ast.literal_eval(again)) == (made, again)


def test_a_variable_has_the_name_of_the_option_and_is_not_given_on() -> None:
    assert invoke(A2A_PROXY_PATH="p", A2A_PROXY_LAST="1") == (
        repr(Example(file=Path("p"), last=True)),
        "[]",
    )


@pytest.mark.parametrize("words", [("--word", "c"), ("--number", "0"), ("--no",)])
def test_invalid_values_are_refused(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(example, words).exit_code == 2


def test_a_command_has_its_options_in_sections() -> None:
    names = [each.name for each in example.params]
    assert names == ["texts", "last", "word", "file", "number", "maybe"]
    assert option_sections(Example) == (
        ("One", ("texts", "last")),
        ("Two", ("word", "file", "number", "maybe")),
    )

    @click.command()
    @add_options(Example, command="x", helps={"word": "Other."})
    def of_x(word: str) -> None: ...

    (one,) = of_x.params
    assert isinstance(one, click.Option)
    assert (one.name, one.help) == ("word", "Other.")


def test_each_option_of_the_recorder_reaches_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    given = ProxyArguments(live="1975", redact=("pii",), faults=("x",))
    options, note = recorder_options(given, faults=("y",))
    assert note == ""
    session = make_session_file(None, options, 1, ("a2a-proxy",), listens=("stdio",))
    carried = {each.name: getattr(session.options, each.name) for each in fields(RecorderOptions)}
    assert carried == {"live": "1975", "redact": ("pii",), "faults": ("y",), "card_keys": ""}
    assert (session.listens, session.command) == (("stdio",), ("a2a-proxy",))
    assert Path(session.recording).parent == tmp_path / "recordings"


def test_every_option_is_in_a_section_and_on_the_commands_that_it_names() -> None:
    sections = [name for _, names in option_sections(ProxyArguments) for name in names]
    assert len(sections) == len(set(sections)) == len(fields(ProxyArguments))
    commands = {
        name: {each.name for each in command.params}
        for name, command in cli.commands.items()
        if name in ("run", "stdio", "wrap-card", "demo")
    }
    for one, other in itertools.combinations(("stdio", "run"), 2):
        assert commands[one] - {"command"} < commands[other]
    assert commands["wrap-card"] - {"card"} < commands["stdio"]
    assert commands["demo"] == {"record", "lossy"}
