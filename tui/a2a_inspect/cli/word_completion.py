"""Completion of arguments in a shell: recordings with their places, pages of the manual, ids of
rules."""

import click
from click.shell_completion import CompletionItem

_MAX_PLACES = 200
"""Maximum exchanges and maximum tasks that are offered."""


def complete_place(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the exchanges and tasks of the recording among the previous words; files if there is
    none, or no place begins with `incomplete`.
    """
    from a2a_inspect.data.references import is_recording_word

    words = ctx.params.get(param.name or "") or ()
    recordings = [word for word in words if is_recording_word(word)]
    places = _list_places(recordings[-1]) if recordings else []
    return _matching(places, incomplete) or [CompletionItem(incomplete, type="file")]


def _list_places(path: str) -> list[str]:
    """Return the numbers of exchanges, if they name one each, and the ids of tasks; empty for an
    unreadable file."""
    from a2a_proxy.recording.cassette.file import open_recording_or_cassette
    from a2a_proxy.recording.errors import RecordingError

    try:
        with open_recording_or_cassette(path) as recording:
            rows = recording.read_exchanges() if len(recording.read_sessions()) == 1 else ()
            numbers = [
                str(row.exchange.id) for row, _ in zip(rows, range(_MAX_PLACES), strict=False)
            ]
            return numbers + [
                row.task.task_id
                for row, _ in zip(recording.read_tasks(), range(_MAX_PLACES), strict=False)
            ]
    except RecordingError:
        return []


def complete_topic(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the pages and files of the manual that begin with `incomplete`."""
    from a2a_inspect.commands.manual import list_files, list_pages

    return _matching([*list_pages(), *list_files()], incomplete)


def complete_rule(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the rules that begin with `incomplete`, with or without `A2A-` as it was typed."""
    from a2a_proxy.rules.define.catalogue import all_rules

    typed = incomplete.upper()
    ids = [*all_rules(), *(ident.removeprefix("A2A-") for ident in all_rules())]
    return _matching(ids if typed else ids[len(ids) // 2 :], typed)


def _matching(words: list[str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(word) for word in words if word.startswith(incomplete) and word.isprintable()
    ]
