"""The screens of `a2a-inspect`."""
