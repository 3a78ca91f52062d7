"""Parsing of the arguments of a comparison."""
