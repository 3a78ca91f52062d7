"""`a2a-inspect check`: findings, formats and exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from junitparser import JUnitXml, TestCase

from a2a_inspect.check import junit as junit_format
from a2a_inspect.check import sarif, text_format
from a2a_inspect.check.report import CheckedSession, CheckFinding, CheckReport
from a2a_inspect.check.sarif import make_fingerprint
from a2a_proxy.model.values import Dialect, Finding, Severity
from a2a_proxy.present.junit import MAX_LINES
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.conversation import EventPause
from a2a_proxy.rules.examples.objects import chunk, snapshot
from a2a_proxy.rules.examples.script import MS, run_together
from support_cli import Ran, run_here
from support_numbered import FIRST, SECOND, done, over, stream
from support_rules import record

SARIF = (
    Path(__file__).parents[3]
    / ".peers/js/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
)
LOSSY = Path(__file__).parents[3] / "recordings/lossy.a2a.jsonl"
RULE, OTHER = all_rules()["A2A-RPC-002"], all_rules()["A2A-GEN-001"]
SECTION = RULE.section_for(Dialect.V1_0)


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with one error, of A2A-RPC-002."""
    path = tmp_path_factory.mktemp("flagged") / "flagged.db"
    record(path, RULE.flagged.make_chunks())
    return path


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of which nothing is to be said."""
    path = tmp_path_factory.mktemp("clean") / "clean.db"
    record(path, RULE.clean.make_chunks())
    return path


def check(tmp_path: Path, *words: object) -> Ran:
    return run_here(tmp_path / "state", "check", *words)


def test_a_finding_as_text(flagged: Path, tmp_path: Path) -> None:
    """Rule, place, what was found, section and path; exit code 1."""
    done = check(tmp_path, flagged)
    assert (done.code, done.err) == (1, "")
    head = f"error   A2A-RPC-002 {RULE.title}  #1.0 (client's request) GetTask  must act: client\n"
    assert f"  {head}          no member `jsonrpc`" in done.out
    assert f"          {SECTION}; at jsonrpc\n" in done.out
    assert "found: 1 error, 0 warnings, 0 infos" in done.out
    assert "explain a rule: a2a-inspect rules A2A-RPC-002" in done.out


def test_nothing_found_names_the_rules_that_ran(clean: Path, tmp_path: Path) -> None:
    """In every format."""
    done = check(tmp_path, clean)
    assert (done.code, done.err) == (0, "")
    assert f"{len(all_rules())} rules ran" in done.lines
    *_, summary = check(tmp_path, clean, "--format", "json").lines
    assert json.loads(summary)["rules"] == list(all_rules())
    (suite,) = JUnitXml.fromstring(junit(clean, tmp_path))
    assert (suite.tests, suite.failures, len(list(suite))) == (
        len(all_rules()),
        0,
        len(all_rules()),
    )
    (document,) = json.loads(check(tmp_path, clean, "--format", "sarif").out)["runs"]
    assert {rule["id"] for rule in document["tool"]["driver"]["rules"]} >= set(all_rules())
    assert document["results"] == []


def test_select_ignore_and_fail_on(flagged: Path, tmp_path: Path) -> None:
    """By the beginning of an id, in short too."""
    assert check(tmp_path, flagged, "--select", "rpc").code == 1
    assert check(tmp_path, flagged, "--select", "A2A-RPC-002", "--fail-on", "never").code == 0
    done = check(tmp_path, flagged, "--ignore", "RPC-002")
    assert done.code == 0
    assert "A2A-RPC-002" not in done.out
    assert (
        check(tmp_path, flagged, "--select", "A2A").code
        == check(tmp_path, flagged, "--select", "A2A-").code
        == 1
    )
    assert f"{len(all_rules())} rules ran" in check(tmp_path, flagged, "--select", "a2a").out


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("word", ["NONE", "GEM-001", "A2A-RPC-9", ""])
def test_an_unknown_rule_prefix_is_refused(
    flagged: Path, tmp_path: Path, option: str, word: str
) -> None:
    """It is mistyped: one error line, one hint line, also beside a good one."""
    done = check(tmp_path, flagged, option, "RPC", option, word)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert f"error: {option} {word}: no rule id begins with it" in error
    assert "a2a-inspect rules" in hint


def test_findings_without_a_rule_can_be_selected(tmp_path: Path) -> None:
    """As rules are: by its beginning, in any case."""
    path = tmp_path / "r.db"
    rule = next(rule for rule in all_rules().values() if "UNDECODABLE" in rule.also_broken)
    record(path, rule.flagged.make_chunks())

    def rules_of(*words: str) -> set[str]:
        lines = [
            json.loads(line) for line in check(tmp_path, path, "--format", "json", *words).lines
        ]
        return {line["rule"] for line in lines if line["event"] == "finding"}

    assert rules_of() >= {"UNDECODABLE", rule.id}
    assert rules_of("--select", "undecodable") == rules_of("--ignore", "A2A") == {"UNDECODABLE"}
    assert (
        rules_of("--ignore", "UNDECODABLE", "--ignore", "RECORDER")
        == rules_of("--select", "A2A")
        == rules_of() - {"UNDECODABLE"}
    )
    assert rules_of("--select", "RECORDER") == set()


def test_junit(flagged: Path, tmp_path: Path) -> None:
    """A failing case with the finding; below the severity that counts it is output only."""
    (failure,) = case_of(JUnitXml.fromstring(junit(flagged, tmp_path)), RULE.id).result
    assert failure.type == "error"
    assert failure.message.startswith("#1.0 GetTask: no member `jsonrpc` in the request")
    assert "error #1.0 GetTask: no member" in failure.text
    assert f"({RULE.title}; {SECTION}; must act: client; at jsonrpc)" in failure.text
    quiet = JUnitXml.fromstring(junit(flagged, tmp_path, "--fail-on", "never"))
    assert quiet.failures == 0
    assert "error #1.0 GetTask: no member" in case_of(quiet, RULE.id).system_out


def test_junit_skips_suppressed_and_unjudged_cases() -> None:
    """Such cases are skipped, and services show why only where it is the text of the element."""
    known = CheckFinding(Finding(RULE.id, Severity.ERROR, 1, "x"), suppressed="an old client")
    report = CheckReport(
        [RULE, OTHER],
        Severity.ERROR,
        [CheckedSession("r", 1, 1, 1, "", [known], skipped_rules=[OTHER.id])],
    )
    document = JUnitXml.fromstring("\n".join(junit_format.format_lines(report)))
    (suite,) = document
    assert (suite.tests, suite.failures, suite.skipped) == (2, 0, 2)
    cases = {case.name[:11]: (case.result[0].message, case.result[0].text) for case in suite}
    assert cases[RULE.id] == ("suppressed: an old client",) * 2
    assert cases[OTHER.id] == ("not run: payloads were not recorded (metadata only)",) * 2


def test_junit_cases_are_unique() -> None:
    """Services take cases of one class and name for the same, in whatever suites, and show the
    first one."""
    found = [CheckFinding(Finding(RULE.id, Severity.ERROR, 1, "x"))]
    one, two = (
        CheckedSession("r", 1, 1, 1, "", found),
        CheckedSession("r", 2, 1, 1, "7 bytes were not captured", found),
    )
    document = JUnitXml.fromstring(
        "\n".join(junit_format.format_lines(CheckReport([RULE], Severity.ERROR, [one, two])))
    )
    names = [(case.classname, case.name) for suite in document for case in suite]
    assert len(set(names)) == len(names) == document.tests == document.failures == 3
    (alone,) = JUnitXml.fromstring(
        "\n".join(junit_format.format_lines(CheckReport([RULE], Severity.ERROR, [one])))
    )
    assert [case.name for case in alone] == [f"{RULE.id} {RULE.title}"]


def test_junit_keeps_the_most_severe_of_many_findings() -> None:
    """And the number of omitted ones: services refuse large files."""
    grades = [Severity.INFO] * MAX_LINES + [Severity.WARNING, Severity.ERROR]
    found = [CheckFinding(Finding(RULE.id, grade, 1, str(at))) for at, grade in enumerate(grades)]
    report = CheckReport([RULE], Severity.ERROR, [CheckedSession("r", 1, 1, 1, "", found)])
    document = JUnitXml.fromstring("\n".join(junit_format.format_lines(report)))
    (failure,) = case_of(document, RULE.id).result
    lines = failure.text.splitlines()
    assert failure.message == str(MAX_LINES + 1)
    assert [line.split()[0] for line in lines[:3]] == ["error:", "warning:", "info:"]
    assert (len(lines), lines[-1]) == (MAX_LINES + 1, "and 2 more lines, left out here")


def case_of(document: JUnitXml, rule: str) -> TestCase:
    """The one of this rule."""
    (case,) = (case for suite in document for case in suite if case.name.startswith(f"{rule} "))
    return case


def junit(path: Path, tmp_path: Path, *words: str) -> str:
    return check(tmp_path, path, "--format", "junit", *words).out


def test_junit_readers_find_every_case(tmp_path: Path) -> None:
    """What services for CI show: counts, the class and name of each case, message, kind and text of
    a failure, and of which session this is."""
    document = JUnitXml.fromstring(junit(LOSSY, tmp_path).encode())
    (suite,) = document
    assert {each.name: each.value for each in suite.properties()} == {
        "recording": str(LOSSY),
        "session": "1",
        "exchanges": "9",
        "frames": "43",
    }
    cases = list(suite)
    assert document.tests == suite.tests == len(cases) >= len(all_rules())
    assert (document.failures, document.errors) == (suite.failures, suite.errors) == (1, 0)
    (lost,) = (case for case in cases if case.is_failure)
    assert (lost.classname, lost.name) == ("a2a.gen", "A2A-GEN-001 Generation gap")
    (failure,) = lost.result
    summary = "#8.4 SendStreamingMessage: generation 4 is missing: 3 is followed by 5"
    assert (failure.type, failure.message) == ("error", summary)
    assert failure.text.startswith(f"error {summary} (")


def test_sarif_is_valid(flagged: Path, clean: Path, tmp_path: Path) -> None:
    """By the schema of SARIF 2.1.0; also with a suppressed finding."""
    schema = json.loads(SARIF.read_text())
    file = suppressing(tmp_path, 'rule = "A2A-RPC"\nreason = "an old client"')
    for words in ((flagged,), (clean,), (flagged, "--suppressions", file)):
        document = json.loads(check(tmp_path, *words, "--format", "sarif").out)
        jsonschema.validate(document, schema)
    (result,) = document["runs"][0]["results"]
    assert result["message"]["text"].endswith(f"; {SECTION}; must act: client; at jsonrpc")
    assert result["ruleId"] == "A2A-RPC-002"
    assert result["suppressions"] == [{"kind": "external", "justification": "an old client"}]
    assert (
        document["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "A2A-RPC-002"
    )


def suppressing(folder: Path, entry: str) -> Path:
    path = folder / "suppressions.toml"
    path.write_text(f"[[suppress]]\n{entry}\n")
    return path


@pytest.mark.parametrize(
    ("entry", "code", "note"),
    [
        ('rule = "A2A-RPC-002"\nreason = "an old client"', 0, "1 suppressed"),
        (
            'rule = "A2A-RPC-002"\nreason = "r"\noperation = "GetTask"\nsummary = "jsonrpc"',
            0,
            "1 suppressed",
        ),
        ('rule = "A2A-RPC-002"\nreason = "r"\noperation = "SendMessage"', 1, "matches no finding"),
        ('rule = "A2A-RPC-002"\nreason = "r"\nuntil = 2020-01-31', 1, "expired on 2020-01-31"),
        ('rule = "A2A-RPC-002"\nreason = "r"\nuntil = 2999-01-31', 0, "1 suppressed"),
    ],
)
def test_suppressions(flagged: Path, tmp_path: Path, entry: str, code: int, note: str) -> None:
    """Suppressed findings do not count; an entry without effect is reported."""
    done = check(tmp_path, flagged, "--suppressions", suppressing(tmp_path, entry))
    assert done.code == code
    assert note in done.out


@pytest.mark.parametrize(
    "entry", ['rule = "A2A-RPC"', 'rule = "A"\nreason = " "', "rule = 1", 'rules = "x"', "]["]
)
def test_a_bad_file_of_suppressions(flagged: Path, tmp_path: Path, entry: str) -> None:
    """One error line, one hint line."""
    done = check(tmp_path, flagged, "--suppressions", suppressing(tmp_path, entry))
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 2)


def test_an_incomplete_capture_fails(clean: Path, tmp_path: Path) -> None:
    """With its own exit code, unless it is allowed; every format says what is missing."""
    path = tmp_path / "cut.db"
    path.write_bytes(clean.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE session SET complete = '7 bytes were not captured'")
    db.close()
    done = check(tmp_path, path)
    assert done.code == 3
    assert "the capture is incomplete: 7 bytes were not captured" in done.out
    assert check(tmp_path, path, "--allow-incomplete").code == 0
    assert "7 bytes" in junit(path, tmp_path)
    assert "7 bytes" in check(tmp_path, path, "--format", "sarif").out


def test_a_report_in_a_file(flagged: Path, tmp_path: Path) -> None:
    """And the text for people beside it."""
    done = check(tmp_path, flagged, "--format", "sarif", "-o", tmp_path / "r.sarif")
    assert "A2A-RPC-002" in done.out
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"
    assert check(tmp_path, flagged, "-o", tmp_path / "missing" / "r").code == 2


def test_a_report_does_not_overwrite_its_input(flagged: Path, tmp_path: Path) -> None:
    """The recording, by another name too, what SQLite keeps beside it, the suppressions: all as
    they were."""
    path, other = tmp_path / "r.db", tmp_path / "other.db"
    path.write_bytes(flagged.read_bytes())
    other.hardlink_to(path)
    beside = tmp_path / "r.db-wal"
    beside.touch()
    file = suppressing(tmp_path, 'rule = "A2A-RPC"\nreason = "r"')
    for output in (path, other, beside, file):
        before = output.read_bytes()
        done = check(tmp_path, path, "--suppressions", file, "-o", output)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 2)
        assert f"error: {output} is an input of this check" in done.err
        assert output.read_bytes() == before


def test_sarif_fingerprints_are_stable_over_runs(flagged: Path, tmp_path: Path) -> None:
    """Another file and another call, the same fingerprint; a name that is no URI is written as
    one."""
    path = tmp_path / "my r\u00e9c%20 #1.db"
    record(path, [*RULE.flagged.make_chunks()])
    (one,), (other,) = (
        json.loads(check(tmp_path, each, "--format", "sarif").out)["runs"][0]["results"]
        for each in (flagged, path)
    )
    assert one["partialFingerprints"] == other["partialFingerprints"]
    assert len(one["partialFingerprints"]["ruleOperationPath/v1"]) == 32
    uri = other["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/my%20r%C3%A9c%2520%20%231.db")
    assert unquote(uri) == str(path)


def test_fingerprints_differ_by_rule_operation_and_path() -> None:
    """And by nothing else."""

    def print_of(rule: str = "R", operation: str = "O", path: str = "p", **other: Any) -> str:
        return make_fingerprint(
            CheckFinding(
                Finding(rule, Severity.INFO, 1, "x", evidence={"path": path}, **other), operation
            )
        )

    assert len({print_of(), print_of(rule="Q"), print_of(operation="P"), print_of(path="q")}) == 4
    assert print_of() == print_of(exchange=7, seq=3, task_id="t")


def test_sarif_meets_the_requirements_of_code_scanning() -> None:
    """What GitHub wants beyond the schema: a region, the one fingerprint that it compares, and
    words of a length."""
    (run,) = document(
        [
            CheckFinding(Finding("RECORDER", Severity.INFO, 1, "x")),
            CheckFinding(Finding("R", Severity.INFO, 1, "x")),
        ]
    )
    for result in run["results"]:
        assert result["locations"][0]["physicalLocation"]["region"].keys() >= {
            "startLine",
            "endLine",
            "endColumn",
        }
    assert (
        len({result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]})
        == 2
    )
    for rule in run["tool"]["driver"]["rules"]:
        texts = [rule[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
        assert all(texts)
        assert max(map(len, texts[:2])) <= 1024
        assert len(rule.get("name", "")) <= 255
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    rule = rules["A2A-GEN-001"]
    assert "**Why it matters:**" in rule["help"]["markdown"]
    assert (rule["properties"]["problem.severity"], rule["properties"]["tags"]) == (
        "error",
        ["a2a", "gen"],
    )


def test_sarif_keeps_the_most_severe_of_many_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, with the number of omitted ones; suppressed findings are omitted first."""
    monkeypatch.setattr("a2a_inspect.check.sarif.MAX_RESULTS", 3)
    grades = [Severity.INFO, Severity.ERROR, Severity.WARNING, Severity.ERROR, Severity.WARNING]
    found = [CheckFinding(Finding("R", grade, 1, str(at))) for at, grade in enumerate(grades)]
    found[3].suppressed = "known"
    (run,) = document(found)
    assert [result["message"]["text"] for result in run["results"]] == ["1", "2", "4"]
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("2 findings")
    (run,) = document(found[:3])
    assert (len(run["results"]), run["invocations"][0]["toolExecutionNotifications"]) == (3, [])


def document(found: list[CheckFinding]) -> list[dict[str, Any]]:
    """The runs of the SARIF document that says this."""
    report = CheckReport(
        list(all_rules().values()), sessions=[CheckedSession("a b:c.db", 1, 1, 1, "", found)]
    )
    runs: list[dict[str, Any]] = json.loads("\n".join(sarif.format_lines(report)))["runs"]
    return runs


def test_the_hint_names_the_most_severe_rule() -> None:
    """Not the first one."""
    first, worst = (
        Finding("A2A-GEN-001", Severity.INFO, 1, "x"),
        Finding("A2A-RPC-002", Severity.ERROR, 1, "x"),
    )
    report = CheckReport(
        [], sessions=[CheckedSession("r", 1, 1, 1, "", [CheckFinding(first), CheckFinding(worst)])]
    )
    assert (
        list(text_format.format_lines(report))[-1]
        == "explain a rule: a2a-inspect rules A2A-RPC-002"
    )


def test_a_dash_is_stdout(flagged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of that name."""
    monkeypatch.chdir(tmp_path)
    done = check(tmp_path, flagged, "--format", "sarif", "-o", "-")
    assert json.loads(done.out)["version"] == "2.1.0"
    assert not (tmp_path / "-").exists()


def test_many_suppressions_without_effect_are_counted(flagged: Path, tmp_path: Path) -> None:
    """Twenty are listed."""
    file = tmp_path / "suppressions.toml"
    file.write_text('[[suppress]]\nrule = "A2A-GEN-001"\nreason = "r"\n' * 23)
    notes = [
        line
        for line in check(tmp_path, flagged, "--suppressions", file).lines
        if line.startswith("note: ")
    ]
    assert len(notes) == 21
    assert notes[0] == "note: the suppression of A2A-GEN-001 (r) matches no finding"
    assert notes[-1] == "note: 3 more suppressions expired or without a matching finding"


def test_a_consequence_stands_below_its_cause(tmp_path: Path) -> None:
    """With the healing of the gap; each line names who must act."""
    lines = check(tmp_path, LOSSY).out.splitlines()
    cause = next(index for index, line in enumerate(lines) if "A2A-GEN-001" in line)
    assert lines[cause].startswith(
        "  error   A2A-GEN-001 Generation gap  #8.4 (agent's event) SendStreamingMessage"
    )
    assert lines[cause + 2].endswith("; found: 5, expected: 4")
    assert lines[cause + 3] == "          generation 4: healed by #9 GetTask at generation 6"
    assert lines[cause + 4].startswith(
        "      warning A2A-ART-006 The artifact of a task differs from the streamed one"
    )
    assert lines[cause + 4].endswith("  #9.1 (agent's response) GetTask  must act: agent")
    assert lines[cause + 5].endswith("(the missing event of A2A-GEN-001)")
    assert lines[cause + 6].endswith("; follows from A2A-GEN-001 #8")
    (alone,) = (
        line
        for line in check(tmp_path, LOSSY, "--select", "ART").out.splitlines()
        if "ART-006 The" in line
    )
    assert alone.startswith("  warning "), "without its cause it stands alone"


def found(
    number: int, rule: str, severity: Severity = Severity.WARNING, **evidence: str
) -> CheckFinding:
    """Return a finding about this exchange; 0 is the total of a kind."""
    seq = 0 if number else -1
    return CheckFinding(
        Finding(rule, severity, 1, f"words {number}", exchange=number, seq=seq, evidence=evidence)
    )


def test_findings_are_grouped_by_rule(tmp_path: Path) -> None:
    """The most severe first, then the most frequent: the first in full, then places, and how many
    are not listed."""
    many = [found(number, RULE.id, actor="client") for number in range(1, 101)]
    rest = found(0, RULE.id, count="310", listed="100", agent="a")
    some = [found(number, OTHER.id, Severity.ERROR) for number in (7, 8)]
    one = found(5, "A2A-SSE-001", Severity.ERROR)
    report = CheckReport(
        [RULE], sessions=[CheckedSession("a b.db", 1, 1, 1, "", [*many, rest, one, *some])]
    )
    lines = list(text_format.format_lines(report))
    assert lines[1:5] == [
        f"  error   {OTHER.id} {OTHER.title}  2 times",
        "          #7.0: words 7",
        f"          {OTHER.section}",
        "          also #8.0",
    ]
    assert lines[5].startswith("  error   A2A-SSE-001 ")
    assert lines[5].endswith("  #5.0")
    groups = [line for line in lines if line.startswith("  warning ")]
    assert groups == [f"  warning {RULE.id} {RULE.title}  310 times  must act: client"]
    assert "          also #2.0, #3.0, #4.0, #5.0, #6.0, #7.0 and 303 more" in lines
    assert lines[-3:-1] == [
        "found: 3 errors, 310 warnings, 0 infos",
        "list each finding: a2a-inspect check --all 'a b.db'",
    ]
    report.lists_all = True
    lines = list(text_format.format_lines(report))
    assert sum(line.startswith(("  warning ", "  error ")) for line in lines) == 104
    assert lines[-2] == "found: 3 errors, 310 warnings, 0 infos"


def test_all_lists_each_finding(tmp_path: Path) -> None:
    """By the option of the command."""
    record(path := tmp_path / "r.db", run_together(RULE.flagged, RULE.flagged).make_chunks())
    words = "no member `jsonrpc`"
    assert check(tmp_path, path).out.count(words) == 1
    assert check(tmp_path, path, "--all").out.count(words) == 2


def test_groups_that_follow_from_each_other_are_printed_once(tmp_path: Path) -> None:
    """The first of them has no cause."""
    findings = [
        found(1, RULE.id, follows=f"{OTHER.id} #2"),
        found(2, OTHER.id, follows=f"{RULE.id} #1"),
    ]
    lines = list(
        text_format.format_lines(
            CheckReport([RULE], sessions=[CheckedSession("r", 1, 1, 1, "", findings)])
        )
    )
    assert len([line for line in lines if "words" in line]) == 2


def test_undecodable_bytes_stand_below_the_rule_about_them(tmp_path: Path) -> None:
    """The rule names the field and the sender, below the ending of the call."""
    record(path := tmp_path / "r.db", all_rules()["A2A-GRPC-007"].flagged.make_chunks())
    lines = check(tmp_path, path).out.splitlines()
    (rule,) = (
        index for index, line in enumerate(lines) if "A2A-GRPC-007 " in line and "ran" not in line
    )
    assert "  must act: agent" in lines[rule]
    assert "field id is not valid UTF-8" in lines[rule + 1]
    below = next(line for line in lines[rule + 1 :] if "UNDECODABLE" in line)
    assert below.startswith("          error   UNDECODABLE Bytes that cannot be decoded  #1.")


def test_a_missing_event_is_named_by_another_stream(tmp_path: Path) -> None:
    """With the place where it is."""
    events = (chunk("a", generation="3"), chunk("b", id="a2", generation="4"), done(5))
    whole = stream(FIRST, SECOND, EventPause(0.5), *events)
    gap = over(
        "grpc", snapshot("WORKING", generation="2"), EventPause(1), *events[1:], subscribes=True
    )
    record(path := tmp_path / "r.db", run_together(whole, gap, after=45 * MS).make_chunks())
    out = check(tmp_path, path, "--select", "GEN-001").out
    assert "must act: something between\n" in out
    assert 'generation 3 (artifact update "a1") is missing on this stream' in out
    assert '          generation 3: artifact result "a"' in out
    assert " on #1." in out
