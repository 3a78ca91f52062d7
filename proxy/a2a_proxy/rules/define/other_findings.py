"""Findings that no rule reports: title, meaning, and what to do about them."""

import textwrap
from collections.abc import Iterator

import msgspec

from a2a_proxy.rules.define.catalogue import all_rules

_TEXT_WIDTH = 100


class OtherFinding(msgspec.Struct, frozen=True):
    """The id of such findings, explained."""

    id: str
    title: str
    meaning: str
    action: str
    """Who must act, and how."""

    def format_lines(self) -> Iterator[str]:
        """Yield the explanation for a terminal."""
        yield f"{self.id}  {self.title}"
        yield "not a rule"
        for paragraph in (self.meaning, self.action):
            yield ""
            yield from textwrap.wrap(paragraph, _TEXT_WIDTH)

    def list_facts(self) -> dict[str, str]:
        """Return the explanation as plain JSON, with the names of `manual_page.rule_facts`."""
        return {"id": self.id, "title": self.title, "what": self.meaning, "why": self.action}


_ALL = (
    OtherFinding(
        "UNDECODABLE",
        "Bytes that cannot be decoded",
        "A connection carries bytes that are not the protocol expected at this place: HTTP, SSE, "
        "gRPC, stdio or a "
        "message of A2A. The finding has the expected and the actual bytes. The bytes were "
        "forwarded unchanged; "
        "messages in them are not in the recording, and no rule has seen them.",
        "The sender (client or agent) must send what its protocol version and content type "
        "announce; if it did, look "
        "for a proxy in between that changes or cuts bodies. If the finding says that the proxy "
        "cannot read the "
        "stream, the fault is in a2a-proxy: report it with the recording.",
    ),
    OtherFinding(
        "HANDSHAKE",
        "A TLS handshake that failed",
        "A client connected, but TLS was not established, so that it sent no request. The finding "
        "has the reason.",
        "If the client does not accept the proxy's certificate, let it trust the authority: "
        "a2a-proxy ca env. Where it "
        "must see the agent's own certificate, leave its TLS unread: --pass HOST.",
    ),
    OtherFinding(
        "RECORDER",
        "The capture or the recorder was disturbed",
        "Bytes of the traffic are missing from the journal, or the recorder was started again and "
        "could not continue "
        "where it had stopped. Traffic was not affected, but the recording is incomplete from this "
        "place.",
        "No peer must act. The operator of the proxy should look for a full or slow disk, and "
        "record again if the gap "
        "matters.",
    ),
    OtherFinding(
        "IMPORT",
        "An imported file",
        "The recording was made by `a2a-inspect import` from a file that has less than the proxy "
        "sees. The finding "
        "lists what is missing. Rules judge what is there.",
        "No peer must act. To record everything, put the proxy between client and agent.",
    ),
    OtherFinding(
        "RULES",
        "A rule failed",
        "A rule raised an exception on a frame or exchange, so it has not judged that place. It "
        "continues with the "
        "next one, and each rule is reported once.",
        "No peer must act. The fault is in a2a-proxy: report it with the recording.",
    ),
    OtherFinding(
        "MIGRATION",
        "A member of a card that has another form in 1.0",
        "`a2a-inspect card` found a member in the form of 0.3, which clients of 1.0 ignore. It is "
        "information, or a "
        "warning if the card is for both versions but lacks the 1.0 form.",
        "The agent should write the 1.0 form that the finding shows, beside the old one while it "
        "has clients of 0.3.",
    ),
    OtherFinding(
        "PROBE",
        "A declared interface that does not answer as declared",
        "`a2a-inspect card --probe` called GetTask with a random id at each interface of a card. "
        "This interface cannot "
        "be reached, does not support the declared binding or version, or has another answer than "
        "TaskNotFoundError.",
        "The agent must serve the interface as declared, or remove it from its card; if it does, "
        "look for a proxy or "
        "firewall in between.",
    ),
)
OTHER_FINDINGS = {each.id: each for each in _ALL}
"""Findings that no rule reports, by id."""


def finding_title(ident: str) -> str:
    """Return the title of a rule, or of findings that no rule reports; empty if the id is
    unknown."""
    known = all_rules().get(ident) or OTHER_FINDINGS.get(ident)
    return known.title if known is not None else ""
