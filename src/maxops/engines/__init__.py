"""The engines, which run calls. All engines return the same bits, and each is imported on first use."""
