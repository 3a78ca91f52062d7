"""Reading of recordings for screens and commands. Contains no widgets."""
