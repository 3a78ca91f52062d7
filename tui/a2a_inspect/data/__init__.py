"""What screens and commands read from recordings. No widgets."""
