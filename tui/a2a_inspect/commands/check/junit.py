"""The report as JUnit XML: a suite a session, a case a rule."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from a2a_inspect.commands.check.report import Checked, Found, Report, facts
from a2a_proxy.cli import text
from a2a_proxy.protocol.text import visible
from a2a_proxy.rules.catalogue import rules


def lines(report: Report) -> Iterator[str]:
    """The document."""
    root = ElementTree.Element("testsuites", name="a2a-inspect check")
    for one in report.checked:
        _suite(root, one, report)
    ElementTree.indent(root)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield ElementTree.tostring(root, encoding="unicode")


def _suite(root: ElementTree.Element, one: Checked, report: Report) -> None:
    """A case fails with findings of its rule that are grave enough; what the decoders said is a case too."""
    by_rule: dict[str, list[Found]] = {rule.id: [] for rule in report.ran}
    for each in one.found:
        by_rule.setdefault(each.finding.rule, []).append(each)
    titles = {rule.id: rule.title for rule in report.ran}
    suite = ElementTree.SubElement(root, "testsuite", name=_clean(f"{one.path} session {one.session}"))
    failures = skipped = 0
    for ident, found in by_rule.items():
        name = f"{ident} {titles[ident]}" if ident in titles else ident
        case = ElementTree.SubElement(suite, "testcase", classname=_family(ident), name=_clean(name))
        counting = [each for each in found if not each.suppressed]
        grave = [each for each in counting if report.fail_on is not None and each.finding.severity >= report.fail_on]
        if grave:
            failures += 1
            worst = max(each.finding.severity for each in grave)
            attributes = {"type": worst.name.lower(), "message": _clean(grave[0].finding.summary)}
            ElementTree.SubElement(case, "failure", attributes).text = "\n".join(map(_line, counting))
        elif counting:
            ElementTree.SubElement(case, "system-out").text = "\n".join(map(_line, counting))
        elif found:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=_clean(f"suppressed: {found[0].suppressed}"))
    if one.missing:
        failures += 1
        case = ElementTree.SubElement(suite, "testcase", classname="a2a.capture", name="the capture is complete")
        ElementTree.SubElement(case, "failure", type="incomplete", message=_clean(one.missing))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")


def _family(ident: str) -> str:
    return f"a2a.{ident.split('-')[1].lower()}" if ident.startswith("A2A-") else "a2a.capture"


def _line(found: Found) -> str:
    """`error #1.3 SendMessage: there is no member ... (A required member is missing; 5.5; at params)`."""
    finding = found.finding
    rule = rules().get(finding.rule)
    told = [rule.title] if rule is not None else []
    where = " ".join(filter(None, (finding.severity.name.lower(), text.place(finding), found.operation)))
    return _clean(f"{where}: {finding.summary} ({'; '.join(told + facts(finding))})")


def _clean(words: str) -> str:
    """What XML cannot hold is escaped."""
    return visible(words).encode("utf-8", "replace").decode()
