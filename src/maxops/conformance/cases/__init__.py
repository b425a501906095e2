"""The cases, derived from the spec table."""
