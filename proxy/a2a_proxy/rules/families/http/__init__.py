"""HTTP requests and responses."""
