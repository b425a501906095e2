"""The calls of other libraries by maxops: change an import, and keep the calls.

Each module's document says what differs.
"""
