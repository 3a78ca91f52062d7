"""Check the options that reach the recorder, and write them into `session.json`."""

import os
import uuid
from dataclasses import fields
from pathlib import Path
from typing import Any

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.recording.names import recording_name


def recorder_options(arguments: ProxyArguments, **checked: Any) -> tuple[RecorderOptions, str]:
    """Return the recorder's options, with the values in `checked` in place of those given, and what
    the user should know about the file of keys.

    Raises:
        UserError: a policy, or the file of keys, cannot be used.
    """
    note, keys = "", arguments.card_keys
    if keys:
        from a2a_proxy.cli.card_keys import load_card_verifier

        note = load_card_verifier(Path(keys))[1]
        keys = os.path.abspath(keys)
    words = policy_words(arguments.redact, arguments.redact_policy)
    checked |= {"redact": words, "card_keys": keys}
    given = {each.name: getattr(arguments, each.name) for each in fields(RecorderOptions)}
    return RecorderOptions(**given | checked), note


def make_session_file(
    record: Path | None,
    options: RecorderOptions,
    started: int,
    command: tuple[str, ...],
    **facts: Any,
) -> SessionFile:
    """Return the `session.json` of a session that begins now, in a new file of the state directory
    if `record` is None. Raises OSError."""
    path = record or file_layout.recordings_dir() / recording_name(started)
    if record is not None:
        file_layout.remember_recording(path)
    return SessionFile(
        recording=str(path.absolute()),
        pid=os.getpid(),
        started=started,
        uuid=str(uuid.uuid4()),
        command=command,
        options=options,
        **facts,
    )
