"""The options of the command line that reach the recorder. `session.json` has their checked
values."""

from dataclasses import dataclass
from typing import Annotated

from a2a_proxy.model.option import LiveMode, Option, Texts


@dataclass(frozen=True, kw_only=True)
class RecorderOptions:
    """The options that reach the recorder. A new member needs no other declaration."""

    faults: Annotated[
        Texts,
        Option(
            section="Relay",
            flag="--fault",
            metavar="TEXT",
            help='Let something go wrong on purpose, several times: "drop status 2 of '
            'SendStreamingMessage call 1", "fail 503 at SendMessage".',
            commands=("run",),
        ),
    ] = ()
    """Faults that the proxy makes on purpose, as the user wrote them."""
    live: Annotated[
        LiveMode,
        Option(
            help="The proposal whose messages SendLiveMessage carries; auto detects it.",
            commands=("run",),
        ),
    ] = "auto"
    redact: Annotated[
        Texts,
        Option(
            section="Recording",
            metavar="WHAT",
            help="Also redact: pii, strict, metadata-only, header:NAME, member:NAME, "
            "'$.json.path', path:a.b, regex:X; keep:... exempts something; none redacts nothing.",
            commands=("run", "stdio", "wrap-card"),
        ),
    ] = ()
    """Parts of the traffic that are not recorded, as words of a policy (`redaction.policy`); empty:
    credentials only."""
    card_keys: Annotated[
        str,
        Option(
            is_file=True,
            help="Verify signatures of agent cards with these keys: JWK set, JWK or PEM (extra: "
            "cards).",
            commands=("run", "stdio"),
        ),
    ] = ""
    """Path of the file of keys; empty if no signatures are verified. Keys are not stored."""
