"""The engines that run calls. All engines return the same bits, and each is imported on first use."""
