"""A recording redacted as the options demand, for commands that write parts of it to other
files."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.redact import open_redacted
from a2a_proxy.redaction import RedactionPolicy
from a2a_proxy.redaction.policy import policy_of


class RedactionOptions(msgspec.Struct, frozen=True):
    """Redaction options of a command."""

    redact: tuple[str, ...] = ()
    redact_policy: Path | None = None

    @property
    def policy(self) -> RedactionPolicy | None:
        """The policy; None without options. Raises UserError."""
        if not self.redact and self.redact_policy is None:
            return None
        return policy_of(policy_words(self.redact, self.redact_policy))

    def redact_choice(self, choice: str) -> str:
        """Return the selecting filter or words for an export's metadata, or `what was chosen` if it
        is redacted.

        The words may themselves contain the values to redact.
        """
        policy = self.policy
        return choice if policy is None or policy.none else "what was chosen"


def label_key() -> bytes:
    """Return the key for labels of this machine's captures, so that each secret has one label.
    Raises UserError."""
    with state_directory_errors():
        try:
            return file_layout.redaction_key()
        except ValueError as wrong:
            raise UserError(
                f"no key to label secrets with: {wrong}", "check the state directory"
            ) from wrong


@contextlib.contextmanager
def open_redacted_view(
    recording: Recording, keys: set[int] | None, options: RedactionOptions
) -> Iterator[tuple[Recording, set[int] | None]]:
    """Yield the recording, or a redacted copy, with the keys of the same exchanges in it.

    Raises:
        UserError: the options form no valid policy, or there is no key for labels.
        RecordingError: the recording is damaged.
    """
    policy = options.policy
    if policy is None or policy.none:
        yield recording, keys
        return
    with open_redacted(recording, policy, label_key()) as redacted:
        yield redacted.recording, None if keys is None else redacted.map_keys(keys)
