"""A recording as the options of redaction want it, for the commands that write some of it elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import UserError, state_directory_errors
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.redact import open_redacted
from a2a_proxy.redaction import RedactionPolicy
from a2a_proxy.redaction.policy import policy_of


class RedactionOptions(msgspec.Struct, frozen=True):
    """What was typed of redaction."""

    redact: tuple[str, ...] = ()
    redact_policy: Path | None = None

    @property
    def policy(self) -> RedactionPolicy | None:
        """The policy; None where nothing was said. Raises UserError."""
        if not self.redact and self.redact_policy is None:
            return None
        return policy_of(policy_words(self.redact, self.redact_policy))

    def redact_choice(self, choice: str) -> str:
        """A filter or other words that chose exchanges, as what was chosen tells of them. Who redacts may have looked
        for the very words that are to go."""
        policy = self.policy
        return choice if policy is None or policy.none else "what was chosen"


def label_key() -> bytes:
    """The key of labels: that of captures on this machine, so that one secret has one label. Raises UserError."""
    with state_directory_errors():
        try:
            return file_layout.redaction_key()
        except ValueError as wrong:
            raise UserError(f"no key to label secrets with: {wrong}", "check the state directory") from wrong


@contextlib.contextmanager
def open_redacted_view(
    recording: Recording, keys: set[int] | None, options: RedactionOptions
) -> Iterator[tuple[Recording, set[int] | None]]:
    """The recording as it is, or a copy as the policy wants it, with the keys of the same exchanges in it.

    Raises:
        UserError: what was typed says no policy, or there is no key for labels.
        RecordingError: the recording is damaged.
    """
    policy = options.policy
    if policy is None or policy.none:
        yield recording, keys
        return
    with open_redacted(recording, policy, label_key()) as made:
        yield made.recording, None if keys is None else made.keys(keys)
