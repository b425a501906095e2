"""Engines, which run calls. All return the same bits; each is imported on first use."""
