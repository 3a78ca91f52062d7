"""The manual's section on the names and forms of secrets, generated from the tables of this
package."""

import re
import textwrap
from collections.abc import Iterator

from a2a_proxy.redaction.key_formats import FORMATS, WEBHOOKS, WORD, KeyFormat
from a2a_proxy.redaction.secret_names import list_names_by_use

_WIDTH = 140
_ALPHABETS = {
    "A-Za-z0-9": "letters and digits",
    "A-Z0-9": "capitals and digits",
    "a-z0-9": "small letters and digits",
    "0-9a-f": "hexadecimal digits",
    "0-9a-fA-F": "hexadecimal digits",
    "A-Za-z0-9+/": "base64 characters",
    WORD: "letters, digits, `_` and `-`",
}


def format_markdown() -> Iterator[str]:
    """Yield the lines of the section."""
    yield "### Names"
    yield ""
    yield (
        "Case and the characters `_`, `-`, `.` and space are ignored: `apikey` is also `API-Key` "
        "and `api_key`."
    )
    for title, names in list_names_by_use().items():
        yield ""
        yield f"{title}:"
        yield from textwrap.wrap(
            ", ".join(f"`{name}`" for name in sorted(names)), _WIDTH, break_on_hyphens=False
        )
    yield ""
    yield "### Keys by their form"
    yield ""
    yield from _format_table(FORMATS)
    yield ""
    yield "Addresses whose last part is a secret; the rest of the address stays:"
    yield ""
    yield from _format_table(WEBHOOKS)


def _format_table(forms: tuple[KeyFormat, ...]) -> Iterator[str]:
    yield "| maker | begins with | then |"
    yield "|---|---|---|"
    for form in forms:
        prefixes = ", ".join(f"`{prefix}`" for prefix in form.prefixes)
        before = f"`{form.before}{form.near}`, then " if form.near else ""
        after = f"`{form.after}` and " if form.after else ""
        count = f"{form.length}" if form.exact else f"{form.length} or more"
        yield (
            f"| {form.maker} | {before}{prefixes} | {after}{count} "
            f"{_describe_alphabet(form.alphabet)} |"
        )


def _describe_alphabet(characters: str) -> str:
    """Describe an alphabet: a base, and the characters in addition to it."""
    base = max((each for each in _ALPHABETS if characters.startswith(each)), key=len)
    more = [f"`{each}`" for each in re.sub(r"\\(.)", r"\1", characters[len(base) :])]
    return _ALPHABETS[base] + (f", also {' '.join(more)}" if more else "")
