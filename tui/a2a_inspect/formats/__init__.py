"""The forms in which exchanges of a recording are written to a file: what there is (`registry`), and a module each."""
