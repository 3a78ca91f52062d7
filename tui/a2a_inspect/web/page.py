"""The page of a tab and the headers of every response: no resources of other servers, no
caching."""

import html
import importlib.util
from pathlib import Path

from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError

_SCRIPT, _STYLE = "js/textual.js", "css/xterm.css"
_FONT = "fonts/RobotoMono-VariableFont_wght.ttf"
FILE_TYPES = {_SCRIPT: "text/javascript", _STYLE: "text/css", _FONT: "font/ttf"}
"""The terminal's files that the page needs, and their media types."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} - a2a-inspect</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/css/xterm.css">
<link rel="stylesheet" href="page.css">
<script src="static/js/textual.js"></script>
<script src="page.js"></script>
</head>
<body>
<p class="word opening">Opening {title} …</p>
<p class="word over">This tab has ended: it was quit, a2a-inspect has stopped, or too many tabs
are open.
<a href="">Open it again</a></p>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{websocket}"
data-font-size="15"></div>
</body>
</html>
"""

PAGE_STYLE = """@font-face {
  font-family: "Roboto Mono"; font-weight: 100 700; font-display: block;
  src: url("static/fonts/RobotoMono-VariableFont_wght.ttf") format("truetype");
}
html, body { margin: 0; height: 100%; background: #11151c; overflow: hidden; }
.textual-terminal { width: 100vw; height: 100vh; }
.word {
  position: absolute; inset: 0; z-index: 1; margin: 0; padding: 0 10%; text-align: center;
  display: flex; flex-direction: column; gap: 1em; align-items: center; justify-content: center;
  font: 16px "Roboto Mono", monospace; color: #d7dde8; background: #11151c;
}
.word a { color: #7fb4ff; }
.word.over, body.-first-byte .word.opening, body.-closed .word.opening { display: none; }
body.-closed .word.over { display: flex; }
"""
"""Styles. The terminal's script sets the classes of `body`."""

PAGE_SCRIPT = """function takeKeys() {
  const input = document.querySelector(".xterm-helper-textarea");
  if (input) { input.blur(); input.focus(); }
}
window.addEventListener("load", () => {
  new MutationObserver((_, seen) => {
    if (document.body.classList.contains("-first-byte")) { seen.disconnect(); takeKeys(); }
  }).observe(document.body, {attributes: true, attributeFilter: ["class"]});
});
window.addEventListener("focus", takeKeys);
"""
"""Script that focuses the terminal, so that keys work without a click."""


def page_html(title: str, host: str, token: str) -> str:
    """Return the page of a tab as `host` sees it."""
    return _PAGE.format(title=html.escape(title), websocket=html.escape(f"ws://{host}/{token}/ws"))


def response_headers(host: str) -> dict[str, str]:
    """Return the headers of every response to a request for `host`, an accepted host name."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        # the terminal writes its cell sizes into style elements
        "style-src": "'self' 'unsafe-inline'",
        "font-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": f"'self' ws://{host}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "clipboard-read=(), camera=(), microphone=(), geolocation=()",
    }


def terminal_files() -> Path:
    """Return the folder of textual-serve with the terminal's script, style and font. Nothing else
    of it is used.

    Raises:
        UserError: textual-serve is not installed.
    """
    found = importlib.util.find_spec("textual_serve")
    if found is None or found.origin is None:
        raise UserError("the screen in a browser needs the extra web", install_hint("web"))
    return Path(found.origin).parent / "static"
