"""Options of commands, made from dataclasses whose members declare them (`model.option`)."""

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import get_annotations
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from a2a_proxy.cli.help_sections import FILE, HelpSections
from a2a_proxy.model.option import Option

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Member(NamedTuple):
    name: str
    kind: Any
    """The type, without its annotation."""
    default: Any
    option: Option


def add_options(
    arguments: type[Any],
    *,
    command: str = "",
    names: Collection[str] = (),
    helps: Mapping[str, str] | None = None,
    environment: bool = True,
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the members of a dataclass as options: all, those that the
    subcommand `command` has, or these `names`. `helps` has the help of options that differs in this
    command. With `environment` each can be set by a variable too, `A2A_PROXY_NAME`.
    """

    def add(function: _Command) -> _Command:
        for member in reversed(list(_read_members(arguments))):
            if member.name in names if names else command in ("", *member.option.commands):
                text = (helps or {}).get(member.name, member.option.help)
                function = _make_option(member, text, environment)(function)
        return function

    return add


def option_sections(arguments: type[Any]) -> HelpSections:
    """Return the headings of the help, each with the names of its options."""
    sections: dict[str, list[str]] = {}
    heading = ""
    for member in _read_members(arguments):
        heading = member.option.section or heading
        sections.setdefault(heading, []).append(member.name)
    return tuple((title, tuple(names)) for title, names in sections.items())


def given_options(context: click.Context) -> Iterator[click.Option]:
    """Yield the options of a command that are on its command line, not in the environment."""
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if isinstance(each, click.Option) and source is ParameterSource.COMMANDLINE:
            yield each


def option_words(context: click.Context) -> list[str]:
    """Return the options on the command line as words for another command. Paths become absolute,
    because the folder in which it starts is unknown."""
    words: list[str] = []
    for option in given_options(context):
        value = context.params[option.name or ""]
        for each in value if option.multiple else (value,):
            text = os.path.abspath(each) if isinstance(option.type, click.Path) else str(each)
            words += [option.opts[0]] if option.is_flag else [option.opts[0], text]
    return words


def _read_members(arguments: type[Any]) -> Iterator[_Member]:
    """Yield the members of the dataclass section by section, in each those of its bases last."""
    hints = get_type_hints(arguments, include_extras=True)
    defaults = {each.name: each.default for each in dataclasses.fields(arguments)}
    sections: dict[str, list[_Member]] = {}
    heading = ""
    for owner in arguments.__mro__:
        for name in get_annotations(owner):
            if name in defaults:
                kind, option = get_args(hints[name])
                heading = option.section or heading
                member = _Member(name, kind, defaults[name], option)
                sections.setdefault(heading, []).append(member)
    for members in sections.values():
        yield from members


def _make_option(member: _Member, text: str, environment: bool) -> Callable[[_Command], _Command]:
    option, kind = member.option, member.kind
    more: dict[str, Any] = {"metavar": option.metavar}
    if get_origin(kind) is tuple:
        kind, more["multiple"] = get_args(kind)[0], True
    elif get_origin(kind) in (UnionType, Union):
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        more["type"] = click.Choice(get_args(kind))
    elif kind is Path or option.is_file:
        more = {"type": FILE if kind is Path else click.Path(), "metavar": "FILE"}
    elif kind is float:
        more["type"] = click.FloatRange(option.minimum)
    if kind is bool:
        more["is_flag"] = True
    elif option.flag_value is not None:
        more |= {"is_flag": False, "flag_value": option.flag_value}
    flag = option.flag or "--" + member.name.replace("_", "-")
    if environment:
        more["envvar"] = f"A2A_PROXY_{flag[2:].replace('-', '_').upper()}"
    return click.option(
        *filter(None, (flag, option.short, member.name)),
        default=member.default,
        show_default=bool(member.default),
        hidden=option.hidden,
        help=text,
        **more,
    )
