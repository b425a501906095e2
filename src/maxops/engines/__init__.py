"""The engines that run calls. The results of all engines are bit-identical. Each engine is imported on first use."""
