"""Dialogs and menus that open over a screen."""
