"""The lines of the console about exchanges and findings."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.cli.console import StartInfo, TextConsole
from a2a_proxy.model.values import Binding, Exchange, Finding, Severity
from a2a_proxy.protocol.finding_totals import rule_totals
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    LinesEnd,
    RecorderDone,
    RuleSummary,
    Status,
)

LINES_END = LinesEnd()
MS = 1_000_000
WARNING = Severity.WARNING


def exchange(number: int, *, ended: bool = True) -> ExchangeStatus:
    began, closed = number * MS, (number + 1) * MS
    row = Exchange(
        number, 1, 1, Binding.JSONRPC, began, operation="SendMessage", how="complete", closed=closed
    )
    return ExchangeStatus(row, "agent:8000", live=not ended, lag=0)


def finding(
    rule: str, number: int, severity: Severity = WARNING, seq: int = 0, at: int = 0
) -> FindingStatus:
    what = Finding(rule, severity, at or number * MS, f"{rule} is broken", exchange=number, seq=seq)
    return FindingStatus(what, "SendMessage", f"Title of {rule}")


def done(findings: Sequence[FindingStatus]) -> RecorderDone:
    totals = rule_totals(each.finding for each in findings)
    counts = {
        each: sum(group.count for group in totals if group.severity is each) for each in Severity
    }
    found = sum(counts.values()), counts[Severity.ERROR], counts[WARNING]
    rules = tuple(RuleSummary(each, f"Title of {each.rule}") for each in totals)
    return RecorderDone(1, 2, 1, 1, 0, 0, 0, 0, *found, 0, rules=rules)


def printed(
    folder: Path, *statuses: Status, quiet: bool = False, verbose: bool = False
) -> tuple[list[str], list[str]]:
    """Return the lines on stdout and on stderr."""
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        console = TextConsole(out, err, quiet=quiet, verbose=verbose)
        for each in statuses:
            console.show_status(each)
        console.close()
    return (folder / "out").read_text().splitlines(), (folder / "err").read_text().splitlines()


def shapes(lines: Sequence[str]) -> list[str]:
    """Return the lines with their times as `TIME`, and without the title and words of findings."""
    printed = (re.sub(r"^\d\d:\d\d:\d\d\.\d{3}", "TIME", line) for line in lines)
    return [
        re.sub(r"(  jsonrpc)? +(\d+(\.\d)? ms)|  \S+ is broken| Title of \S+", "", line)
        for line in printed
    ]


def test_line_of_a_call_names_why_it_failed(tmp_path: Path) -> None:
    """The agent's own error is a line by itself."""
    cut = msgspec.structs.replace(exchange(1).exchange, how="agent gone")
    failed = msgspec.structs.replace(cut, how="complete", error="HTTP 500: no")
    ending = {"cause": "no-answer", "summary": "the agent closed the connection"}
    out, _ = printed(
        tmp_path,
        ExchangeStatus(cut, "agent:8000", live=False, lag=0, ending=ending),
        ExchangeStatus(
            failed, "agent:8000", live=False, lag=0, ending={**ending, "cause": "agent-error"}
        ),
        LINES_END,
    )
    assert out[0].endswith("no-answer: the agent closed the connection")
    assert out[1].endswith("HTTP 500: no")


def test_findings_are_below_their_exchange_in_order_of_time(tmp_path: Path) -> None:
    """The recorder sends them first, by severity."""
    error = finding("E", 1, Severity.ERROR, seq=3, at=4 * MS)
    out, _ = printed(
        tmp_path, error, finding("W", 1, seq=1, at=2 * MS), exchange(1), exchange(2), LINES_END
    )
    assert shapes(out) == [
        "TIME  ok       #1 SendMessage",
        "              warning W  #1.1",
        "              error   E  #1.3",
        "TIME  ok       #2 SendMessage",
    ]


def test_a_finding_before_the_line_of_its_exchange_names_it(tmp_path: Path) -> None:
    """It is printed at once, with its time and the operation; below a line about the same exchange
    it is indented."""
    live, late = exchange(1, ended=False), finding("L", 1, seq=9)
    out, _ = printed(
        tmp_path,
        finding("W", 1, seq=1),
        LINES_END,
        live,
        LINES_END,
        late,
        LINES_END,
        exchange(1),
        LINES_END,
    )
    assert shapes(out) == [
        "TIME  warning W  #1.1 SendMessage",
        "TIME  ok       #1 SendMessage",
        "              warning L  #1.9",
        "TIME  ok       #1 SendMessage",
    ]


def test_repeated_findings_are_one_line_in_the_summary(tmp_path: Path) -> None:
    """The first in words; then only the exchange names the rule; at the end their number, the most
    severe first."""
    found = [
        each
        for number in range(1, 21)
        for each in (finding("W", number), finding("E", number, Severity.ERROR))
    ]
    lines = [
        status
        for each in found[::2]
        for status in (each, exchange(each.finding.exchange), LINES_END)
    ]
    out, err = printed(tmp_path, *found[1::2][:1], *lines, done(found))
    assert [line for line in out if "is broken" in line] == [out[1], out[2]]
    assert shapes(out)[3:5] == [
        f"TIME  ok       #{number} SendMessage  again warning W" for number in (2, 3)
    ]
    assert "40 findings (20 errors, 20 warnings)" in err[0]
    assert err[1:3] == [
        "  error   E Title of E  20 times, first in #1.0",
        "  warning W Title of W  20 times, first in #1.0",
    ]
    assert err[3].startswith("list the findings: a2a-inspect check")


def test_the_summary_does_not_repeat_what_stands_above(tmp_path: Path) -> None:
    """A run in which each finding was printed in words."""
    found = [finding("W", 1), finding("E", 1, Severity.ERROR)]
    out, err = printed(tmp_path, *found, exchange(1), LINES_END, done(found))
    assert len(out) == 3
    assert len(err) == 2


def test_a_long_summary_ends_with_the_number_of_other_rules(tmp_path: Path) -> None:
    """Twenty rules are listed."""
    found = [finding(f"R{number:02}", 1 + again) for number in range(23) for again in (0, 1)]
    _, err = printed(tmp_path, done(found))
    assert [line for line in err if "2 times" in line] == err[1:21]
    assert err[21] == "  and 3 more rules"


@pytest.mark.parametrize("verbose", [False, True])
def test_information_is_printed_with_verbose_only(tmp_path: Path, *, verbose: bool) -> None:
    """It is counted in both cases."""
    found = [finding("I", number, Severity.INFO) for number in (1, 2)]
    out, err = printed(
        tmp_path, *found, exchange(1), exchange(2), LINES_END, done(found), verbose=verbose
    )
    assert len(out) == (3 if verbose else 2)
    assert ("again info I" in out[-1]) is verbose
    assert "2 findings (2 infos)" in err[0]
    assert any("2 times" in line for line in err) is verbose


def test_with_quiet_every_finding_names_its_exchange(tmp_path: Path) -> None:
    """Because no exchange has a line."""
    out, _ = printed(tmp_path, finding("W", 1), exchange(1), LINES_END, quiet=True)
    assert shapes(out) == ["TIME  warning W  #1.0 SendMessage"]


def test_lines_without_a_progress_message_are_printed_at_the_end(tmp_path: Path) -> None:
    """The recorder died, or the pipe was full."""
    out, _ = printed(tmp_path, finding("W", 1), exchange(1))
    assert len(out) == 2


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/me/.venv", "a2a-inspect r.db"),
        ("/cache/uv/archive-v0/qV_p6s2x", "uvx --from a2a-proxy a2a-inspect r.db"),
    ],
    ids=["venv", "uvx"],
)
def test_the_banner_has_the_command_that_the_shell_finds(
    prefix: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`uvx a2a-proxy demo` installs nothing that stays."""
    monkeypatch.setattr(sys, "prefix", prefix)
    with (tmp_path / "err").open("w") as err:
        console = TextConsole(None, err, quiet=True)
        console.show_start(StartInfo("1", [], "r.db", (), endless=False))
        console.close()
    assert (tmp_path / "err").read_text().splitlines()[-1] == f"inspect it: {command}"
