"""The card command: read a card, judge it, probe its interfaces, print the report."""

import asyncio
import datetime
import os
import secrets
from pathlib import Path
from typing import Any

import msgspec

from a2a_inspect.check.output import ReportOptions, ReportOutput, read_card_keys
from a2a_inspect.check.report import CARD_FINDINGS, CheckedSession, CheckFinding
from a2a_inspect.commands.card.judge import card_rules, judge_card
from a2a_inspect.commands.card.migration import migration_findings
from a2a_inspect.commands.card.source import read_source
from a2a_proxy.model.values import Actor, Finding, Severity
from a2a_proxy.present.text import format_count
from a2a_proxy.protocol.operations import CARD_OPERATION
from a2a_proxy.protocol.session_facts import card_facts
from a2a_proxy.protocol.text import to_one_line
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.state.card_declarations import Json, indexed_objects, is_v1

_PROBE_OPERATION = "GetTask"


class CardOptions(ReportOptions, kw_only=True):
    """Options of the card command."""

    probe: bool = False
    lists_all: bool = True


def run_card(word: str, options: CardOptions, now: int) -> int:
    """Check the card of a URL, a file or standard input (`-`) at `now` (ns), print the report and
    return the exit code.

    Raises:
        UserError: there is no card, the suppressions cannot be read, no rule is selected or a
        prefix is unknown, or the
            report would overwrite an input.
    """
    today = datetime.datetime.fromtimestamp(now // 1_000_000_000, datetime.UTC).date()
    others = {
        ident: text for ident, text in CARD_FINDINGS.items() if ident != "PROBE" or options.probe
    }
    rules = card_rules(fetched="://" in word, has_keys=options.card_keys is not None)
    output = ReportOutput(options, today, rules, others)
    output.refuse_overwriting([] if "://" in word else [Path(word)])
    source = read_source(word)
    card: Json = msgspec.json.decode(source.responses[-1].body)
    redactor = Redactor(secrets.token_bytes(32))
    executed = {rule.id: rule for rule in output.report.executed_rules}
    found, lines = judge_card(source, executed, redactor, now, read_card_keys(options.card_keys))
    if "MIGRATION" in output.rule_ids:
        found += map(redactor.redact_finding, migration_findings(card, now))
    findings = [CheckFinding(each, CARD_OPERATION.name) for each in found]
    notes = [*source.notes, *lines]
    if options.probe:
        probe_notes, probe_findings = _probe_card(card, redactor, now)
        notes += probe_notes
        findings += [
            CheckFinding(each, _PROBE_OPERATION)
            for each in probe_findings
            if each.rule in output.rule_ids
        ]
    contents = redactor.redact_text(_describe_card(card))
    exchanges = len(source.responses) if source.fetched else 0
    output.report.sessions.append(
        CheckedSession(
            source.name,
            1,
            exchanges,
            2 * exchanges,
            "",
            findings,
            started=now,
            contents=contents,
            notes=notes,
        )
    )
    return output.print_report()


def _describe_card(card: Json) -> str:
    """Return `card "Concierge" 1.0.0, A2A 1.0, 2 interfaces, 3 skills`."""
    facts = card_facts(card)
    own: Any = card.get("version")
    name = to_one_line(facts.name, 60)
    head = " ".join(
        filter(
            None,
            (
                "card",
                f'"{name}"' if name else "",
                to_one_line(own, 20) if isinstance(own, str) else "",
            ),
        )
    )
    versions = {each.version for each in facts.interfaces if each.version} or {
        facts.version or "1.0"
    }
    if is_v1(card) and "url" in card:
        versions |= {facts.version or "0.3"}
    return ", ".join(
        (
            head,
            f"A2A {to_one_line(' and '.join(sorted(versions)), 40)}",
            format_count(
                len({(each.url, each.binding, each.version) for each in facts.interfaces}),
                "interface",
            ),
            format_count(len(indexed_objects(card.get("skills"))), "skill"),
        )
    )


def _probe_card(card: Json, redactor: Redactor, now: int) -> tuple[list[str], list[Finding]]:
    """Return notes about the interfaces that answer as declared, and findings about the others."""
    # Otherwise gRPC logs failed TLS handshakes to stderr. It reads this when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from a2a_proxy.cli.card.probe import Verdict, probe_interfaces

    notes: list[str] = []
    findings: list[Finding] = []
    for each in asyncio.run(probe_interfaces(card)):
        line = redactor.redact_text(f"{each.label}: {each.words}")
        if each.verdict in (Verdict.ODD, Verdict.FAILS):
            severity = Severity.ERROR if each.verdict is Verdict.FAILS else Severity.WARNING
            evidence = {"path": each.interface.path, "actor": Actor.AGENT.value}
            findings.append(Finding("PROBE", severity, now, line, evidence=evidence))
        else:
            notes.append(f"probe: {line}")
    if not notes and not findings:
        notes.append("probe: the card declares no interface")
    return notes, findings
