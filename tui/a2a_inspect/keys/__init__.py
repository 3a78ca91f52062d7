"""Keys: every action with its id, what the user bound it to, and how both are listed."""
