"""How the panes of the main screen lie: by classes that `Browse` and `Treed` set. Small means one pane at a time."""

from __future__ import annotations

LAYOUT_CSS = """
Browse { background: $background; }
Browse #notice { height: 1fr; content-align: center middle; text-align: center; color: $foreground 70%; }
Browse #exchanges { height: 2fr; }
Browse #lower { height: 3fr; }
Browse #frames { width: 9fr; }
Browse #frame { width: 10fr; border-left: vkey $surface; }
Browse.-empty #exchange-list, Browse.-empty ListHead, Browse.-empty #lower { display: none; }
Browse.-empty #exchanges { height: 1fr; }
Browse #notice { display: none; }
Browse.-empty #notice { display: block; }
Browse.-low Breadcrumbs { display: none; }
Browse.-low Breadcrumbs.-narrowed { display: block; }
Browse #all, Browse #lists, Browse #lower { layout: horizontal; height: 1fr; width: 1fr; }
Browse #lists { layout: vertical; }
Browse #lower { height: 3fr; }
Browse #tree { width: 40; display: none; border-right: vkey $surface; }
Browse.-layout-tree #tree { display: block; }
Browse.-layout-columns #lists { layout: horizontal; }
Browse.-layout-columns #exchanges { width: 2fr; height: 1fr; }
Browse.-layout-columns #lower { layout: vertical; width: 3fr; height: 1fr; }
Browse.-layout-columns #frames { width: 1fr; height: 2fr; }
Browse.-layout-columns #frame { width: 1fr; height: 3fr; }
Browse.-empty #tree, Browse.-single #tree { display: none; }
Browse.-single #exchanges, Browse.-single #lower { width: 1fr; height: 1fr; }
Browse.-single #frames, Browse.-single #frame { height: 1fr; }
Browse.-single.-at-tree #tree { display: block; width: 1fr; border: none; }
Browse.-single.-at-tree #lists { display: none; }
Browse.-single #frames, Browse.-single #frame { width: 1fr; border: none; }
Browse.-single.-at-exchanges #lower { display: none; }
Browse.-single.-at-frames #exchanges, Browse.-single.-at-frames #frame { display: none; }
Browse.-single.-at-frame #exchanges, Browse.-single.-at-frame #frames { display: none; }
"""
