"""Translation of the options in replay hints into settings of a test."""

from __future__ import annotations

import re

_SETTING_FORMS = (
    (re.compile(r"--match ([a-z-]+)"), r'match="\1"'),
    (re.compile(r"--policy (\w+)=([a-z-]+)"), r'policies={"\1": "\2"}'),
    (re.compile(r"--(lenient|allow-incomplete|allow-redacted)"), r"\1=True"),
)


def translate_options(hint: str) -> str:
    """Return a hint with settings in place of options: `--match loose` is `match="loose"` in `a2a_cassette`."""
    said = hint
    for option, setting in _SETTING_FORMS:
        said = option.sub(setting, said)
    return said if said == hint else f"{said.replace('allow-', 'allow_')} (in @pytest.mark.a2a_cassette)"
