"""Helpers that several groups of tests share."""
