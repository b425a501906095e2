"""The functions of other libraries on maxops: change an import, and keep the calls.

The documentation of each module lists the differences.
"""
