"""Keys: the tables of keys, the scopes in which they are in force, the file of keys of the user."""
