"""Backends that fail on import in different ways."""
