"""Terminal screen and headless commands that read recordings.

Opens no network connection except in `web`, `commands.otlp` and `commands.archive`; `commands.card`
fetches through `a2a_proxy.cli.card`.

Entry points:
- `cli`: options and arguments (package)
- `app`: the Textual application
- `web`: the screen in a browser (package)
- `commands`: headless commands, one module each (package)

The screen:
- `screens`: the screens (package)
- `dialogs`: dialogs and menus over a screen (package)
- `widgets`: widgets, which read no files (package)
- `keys`: actions, and the keys bound to them (package)

Content:
- `check`: the reports of `check` and `card` (package)
- `formats`: export formats (package)
- `imports`: import of HAR files (package)
- `diff`: arguments of a comparison (package)
- `lanes`: conversations as swimlanes (package)
- `plots`: histograms of traffic and latencies (package)
- `data`: reading of recordings for screens and commands (package)

Elements:
- `arguments`: classification of command-line words
- `clipboard`: copying of text
- `signals`: SIGTERM and SIGHUP
"""
