"""How the panes of the main screen lie: by classes that `BrowseScreen` and `TreeScreen` set. Small means one pane at a
time."""

from __future__ import annotations

LAYOUT_CSS = """
BrowseScreen { background: $background; }
BrowseScreen #notice { height: 1fr; content-align: center middle; text-align: center; color: $foreground 70%; }
BrowseScreen #exchanges { height: 2fr; }
BrowseScreen #lower { height: 3fr; }
BrowseScreen #frames { width: 9fr; }
BrowseScreen #frame { width: 10fr; border-left: vkey $surface; }
BrowseScreen.-empty #exchange-list, BrowseScreen.-empty ListHead, BrowseScreen.-empty #lower { display: none; }
BrowseScreen.-empty #exchanges { height: 1fr; }
BrowseScreen #notice { display: none; }
BrowseScreen.-empty #notice { display: block; }
BrowseScreen.-low Breadcrumbs { display: none; }
BrowseScreen.-low Breadcrumbs.-narrowed { display: block; }
BrowseScreen #all, BrowseScreen #lists, BrowseScreen #lower { layout: horizontal; height: 1fr; width: 1fr; }
BrowseScreen #lists { layout: vertical; }
BrowseScreen #lower { height: 3fr; }
BrowseScreen #tree { width: 40; display: none; border-right: vkey $surface; }
BrowseScreen.-layout-tree #tree { display: block; }
BrowseScreen.-layout-columns #lists { layout: horizontal; }
BrowseScreen.-layout-columns #exchanges { width: 2fr; height: 1fr; }
BrowseScreen.-layout-columns #lower { layout: vertical; width: 3fr; height: 1fr; }
BrowseScreen.-layout-columns #frames { width: 1fr; height: 2fr; }
BrowseScreen.-layout-columns #frame { width: 1fr; height: 3fr; }
BrowseScreen.-empty #tree, BrowseScreen.-single #tree { display: none; }
BrowseScreen.-single #exchanges, BrowseScreen.-single #lower { width: 1fr; height: 1fr; }
BrowseScreen.-single #frames, BrowseScreen.-single #frame { height: 1fr; }
BrowseScreen.-single.-at-tree #tree { display: block; width: 1fr; border: none; }
BrowseScreen.-single.-at-tree #lists { display: none; }
BrowseScreen.-single #frames, BrowseScreen.-single #frame { width: 1fr; border: none; }
BrowseScreen.-single.-at-exchanges #lower { display: none; }
BrowseScreen.-single.-at-frames #exchanges, BrowseScreen.-single.-at-frames #frame { display: none; }
BrowseScreen.-single.-at-frame #exchanges, BrowseScreen.-single.-at-frame #frames { display: none; }
"""
