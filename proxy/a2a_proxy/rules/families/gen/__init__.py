"""Task generations."""
