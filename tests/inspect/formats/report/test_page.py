"""The page around the tables: it requests nothing, is valid HTML, and is readable."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from importlib import resources

from a2a_inspect.formats.report import page
from support_report import Page

ASKS = re.compile(
    r"https?:|\bfetch\b|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|\bimport\b|"
    r"\bWorker\b|@import|url\("
    r"|document\.cookie|localStorage|window\.open|\.src\b"
)
MAKES = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|DOMParser|"
    r"srcdoc|createContextualFragment"
)
SVG = "http://www.w3.org/2000/svg"
"""The one address in it: a name, nobody asks for it."""


def written(title: str = "a report") -> bytes:
    return b"".join(page.split_page(title))


def test_the_content_policy_allows_only_its_own_script_and_style() -> None:
    """By the hashes of the text between the tags."""
    made = Page(written())
    (policy,) = (each["content"] for each in made.attributes("meta") if each.get("http-equiv"))
    directives = dict(each.split(" ", 1) for each in (policy or "").split("; "))
    digests = {
        name: hashlib.sha256(made.texts[name].encode()).digest() for name in ("script", "style")
    }
    hashes = {
        name: f"'sha256-{base64.b64encode(digest).decode()}'" for name, digest in digests.items()
    }
    assert directives.pop("script-src") == hashes["script"]
    assert directives.pop("style-src") == hashes["style"]
    assert directives == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    names = [tag for tag, _ in made.elements]
    assert (names.count("script"), names.count("style")) == (1, 1)
    assert names.index("meta") < names.index("style")


def test_the_page_requests_no_address_and_builds_no_markup() -> None:
    """Neither the script, nor the style, nor an attribute."""
    made = Page(written())
    for text in (made.texts["script"], made.texts["style"]):
        assert not ASKS.search(text.replace(SVG, ""))
        assert not MAKES.search(text)
        assert not re.search("</script|</style|<!--", text, re.IGNORECASE), "it would end too early"
    for _, attributes in made.elements:
        assert not {"src", "srcset", "style", "action"} & {name for name, _ in attributes}
        assert not [name for name, _ in attributes if name.startswith("on")]
        assert all(
            (value or "")[:1] == "#" or value == "data:,"
            for name, value in attributes
            if name == "href"
        )


def test_every_file_of_the_folder_is_in_the_page() -> None:
    """And so in the package."""
    there = {
        each.name
        for each in resources.files(page).iterdir()
        if each.name.endswith((".js", ".css", ".html"))
    }
    assert there == {*page.SCRIPTS, *page.STYLES, "page.html"}


def test_a_title_is_text() -> None:
    """Whatever a file is called."""
    plain, odd = Page(written()), Page(written("</title><script>alert(1)</script>\u202e$policy"))
    assert odd.elements == plain.elements
    assert odd.texts["title"] == "</title><script>alert(1)</script><U+202E>$policy"


def test_landmarks_and_labels() -> None:
    """Landmarks for users of screen readers."""
    made = Page(written())
    names = [tag for tag, _ in made.elements]
    for landmark in ("header", "nav", "main", "footer", "noscript", "h1", "title"):
        assert names.count(landmark) == 1, landmark
    assert dict(made.elements[0][1]) == {"lang": "en"}
    labelled = {each["for"] for each in made.attributes("label")}
    fields = {each["id"] for name in ("input", "select") for each in made.attributes(name)}
    assert fields == labelled
    assert made.attributes("nav")[0]["aria-label"]
    assert {"class": "skip", "href": "#main"} in made.attributes("a")


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2 has it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_texts_have_enough_contrast() -> None:
    """Contrast of 4.5 and more (WCAG AA), light and dark."""
    style = page.join_files(page.STYLES)
    pairs = {
        name: both
        for name, *both in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)
    }
    grounds = [pairs[name] for name in ("paper", "side", "chosen", "wash")]
    texts = [pairs[name] for name in ("text", "dim", "accent", "error", "warning", "info", "good")]
    low = [
        (text[mode], ground[mode])
        for text, ground, mode in itertools.product(texts, grounds, (0, 1))
        if contrast(text[mode], ground[mode]) < 4.5
    ]
    assert not low
    bars = re.findall(r"\.state\.[^{]*\{ background: light-dark\((#\w{6}), (#\w{6})\)", style)
    assert len(bars) == 6
    assert all(contrast(bar[mode], pairs["text"][mode]) >= 4.5 for bar in bars for mode in (0, 1))
