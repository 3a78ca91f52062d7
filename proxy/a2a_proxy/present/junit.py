"""JUnit XML as CI services accept it: no characters that XML lacks, and no text longer than they
read.

The services identify a case by its `classname` and `name` alone, whatever its suite, and show the
text of a failed or skipped case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree

from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

MAX_LINES = 200
"""Lines of a case; some services refuse a document of 30 MB."""


class JunitSuite:
    """One suite; its cases are in the order in which they are added."""

    def __init__(
        self, name: str, *, began: int = 0, properties: Mapping[str, object] | None = None
    ) -> None:
        """Create a suite. `began`: ns since the epoch, or 0 if unknown."""
        self.element = ElementTree.Element("testsuite", name=escape_xml_text(name))
        if began:
            self.element.set(
                "timestamp", text.format_utc(began)[: len("2026-11-22T14:30:00")]
            )  # its schemas have no zone
        if properties:
            parent = ElementTree.SubElement(self.element, "properties")
            for key, value in properties.items():
                ElementTree.SubElement(
                    parent, "property", name=key, value=escape_xml_text(str(value))
                )

    def add_case(self, classname: str, name: str, *, took: int | None = None) -> JunitCase:
        """Add a case; `took`: ns, or None if unknown."""
        element = ElementTree.SubElement(
            self.element, "testcase", classname=classname, name=escape_xml_text(name)
        )
        if took is not None:
            element.set("time", f"{took / 1e9:.6f}")
        return JunitCase(element)

    def count_cases(self, what: str) -> int:
        """Return the number of cases that contain this element."""
        return len(self.element.findall(f"testcase/{what}"))


class JunitCase:
    """One case, which has passed unless a failure or skip is added."""

    def __init__(self, element: ElementTree.Element) -> None:
        self._element = element

    def add_failure(self, kind: str, message: str, lines: Sequence[str]) -> None:
        """Mark the case as failed; `message` in one line, `lines` in full."""
        _set_text(
            ElementTree.SubElement(
                self._element, "failure", type=kind, message=escape_xml_text(message)
            ),
            lines,
        )

    def add_skipped(self, why: str) -> None:
        """Mark the case as skipped; the reason is stored in both places where services read it."""
        ElementTree.SubElement(
            self._element, "skipped", message=escape_xml_text(why)
        ).text = escape_xml_text(why)

    def add_output(self, lines: Sequence[str]) -> None:
        """Add output to a passed case."""
        _set_text(ElementTree.SubElement(self._element, "system-out"), lines)


def junit_document(name: str, suites: Iterable[JunitSuite]) -> Iterator[str]:
    """Yield the document of these suites, with the counts that its readers require."""
    root = ElementTree.Element("testsuites", name=name)
    total = {"tests": 0, "failures": 0, "errors": 0}
    for suite in suites:
        counts = {
            "tests": len(suite.element.findall("testcase")),
            "failures": suite.count_cases("failure"),
            "errors": 0,
        }
        for key, count in {**counts, "skipped": suite.count_cases("skipped")}.items():
            suite.element.set(key, str(count))
        total = {key: count + counts[key] for key, count in total.items()}
        root.append(suite.element)
    for key, count in total.items():
        root.set(key, str(count))
    ElementTree.indent(root)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield ElementTree.tostring(root, encoding="unicode")


def escape_xml_text(text: str) -> str:
    """Return the text with the characters escaped that XML cannot contain."""
    return make_visible(text).encode("utf-8", "replace").decode()


def _set_text(element: ElementTree.Element, lines: Sequence[str]) -> None:
    left = len(lines) - MAX_LINES
    more = [f"and {text.format_count(left, 'more line')}, left out here"] if left > 0 else []
    element.text = "\n".join([*map(escape_xml_text, lines[:MAX_LINES]), *more])
