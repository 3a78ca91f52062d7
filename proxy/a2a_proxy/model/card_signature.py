"""A signature of an agent card, with what verifying it showed."""

from enum import StrEnum

import msgspec


class CardForm(StrEnum):
    """A way to turn a card into the bytes that are signed; specification and SDKs disagree
    (manual/signatures.md)."""

    SPECIFICATION = "specification"
    """A2A 1.0 section 8.4.1: members with presence and required members kept, RFC 8785."""
    SDK = "SDKs of today"
    """Empty members dropped, RFC 8785."""
    PYTHON_1_1_2 = "Python SDK 1.1.2"
    """Empty members dropped, `json.dumps`."""
    JAVASCRIPT_OBJECT = "JavaScript SDK, from an AgentCard object"
    """The form of SDKs of today without `securitySchemes`."""
    PYTHON_0_3 = "Python SDK 0.3"
    """The members of 0.3 without those at the default of its schema, empty members dropped,
    `json.dumps`."""
    AS_SERVED = "as served"
    """The JSON that the agent sent, RFC 8785."""


class SignatureVerdict(StrEnum):
    """The result for one signature."""

    UNVERIFIED = "not verified"
    """There is no key for it, or the card is not complete."""
    VERIFIED = "verified"
    FAILED = "does not verify"


class CardSignature(msgspec.Struct, frozen=True, omit_defaults=True):
    """One signature of a card."""

    kid: str = ""
    alg: str = ""
    jku: str = ""
    """URL of the signer's keys, as sent; never fetched."""
    verdict: SignatureVerdict = SignatureVerdict.UNVERIFIED
    forms: tuple[CardForm, ...] = ()
    """The forms with which it verifies; more than one if they are the same bytes for this card."""
    key: str = ""
    """The key that verifies it: its id, or `key 2`, its place in the file."""
    uncovered: tuple[str, ...] = ()
    """Paths of members that can be changed without breaking the signature; at most 20."""
    reason: str = ""
    """Why it does not verify or was not verified, if there is more to say than the verdict."""

    def describe(self) -> str:
        """Return `signed by key-1 (ES256), verified`, what limits that, and the URL of the keys."""
        signer = f"signed by {self.kid or 'an unnamed key'} ({self.alg or 'no algorithm'})"
        verdict = str(self.verdict)
        if self.reason:
            verdict += f": {self.reason}"
        elif self.key not in ("", self.kid):
            verdict += f" with {self.key}"
        words = [signer, verdict]
        if self.forms and CardForm.SPECIFICATION not in self.forms:
            words.append(f"only in the form: {self.forms[0]}")
        elif self.forms and CardForm.SDK not in self.forms:
            words.append("but the SDKs of today compute other bytes and refuse it")
        if self.uncovered:
            words.append(f"not covered: {', '.join(self.uncovered)}")
        if self.jku:
            words.append(f"jku {self.jku} (not fetched)")
        return ", ".join(words)
