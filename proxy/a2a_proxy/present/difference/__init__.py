"""Differences as text and JSON: laid out in one column or two, or as objects. Widgets only paint
the layout."""
