"""`a2a-inspect extensions`: list the extensions that are known by name."""

import functools

from a2a_inspect.widgets.table import table_lines
from a2a_proxy.hooks.extensions import ExtensionPlugin, load_extensions, usable_extensions
from a2a_proxy.present.output import print_line, print_note
from a2a_proxy.protocol.extensions import Extension
from a2a_proxy.protocol.extensions.registry import BUILT_IN
from a2a_proxy.protocol.text import make_visible

EXIT_UNUSABLE = 2
"""Exit code if a plug-in cannot be used."""
_plugins = functools.cache(load_extensions)


def plugin_extensions() -> tuple[Extension, ...]:
    """Return the extensions of plug-ins; a plug-in that cannot be used is reported on stderr."""
    plugins = _plugins()
    for each in plugins:
        if each.failure:
            print_note(f"a2a-inspect: warning: {_failure_words(each)}")
    return usable_extensions(plugins)


def list_extensions() -> int:
    """Print one line per known extension. Returns 2 if a plug-in cannot be used."""
    plugins = _plugins()
    rows = [
        (each.extension, each.package or each.reference)
        for each in plugins
        if each.extension is not None
    ]
    rows += [(each, "built in") for each in BUILT_IN]
    cells = [
        (make_visible(each.name), make_visible(uri), make_visible(source))
        for each, source in rows
        for uri in each.uris
    ]
    for line in table_lines(("EXTENSION", "URI", "FROM"), cells):
        print_line(line)
    failures = [each for each in plugins if each.failure]
    for each in failures:
        print_note(f"a2a-inspect: error: {_failure_words(each)}")
    return EXIT_UNUSABLE if failures else 0


def _failure_words(plugin: ExtensionPlugin) -> str:
    package = f" of {plugin.package}" if plugin.package else ""
    return make_visible(f"extension {plugin.reference}{package}: {plugin.failure}")
