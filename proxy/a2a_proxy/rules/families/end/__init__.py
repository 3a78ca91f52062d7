"""How calls and tasks end."""
