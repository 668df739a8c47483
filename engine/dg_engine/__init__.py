"""Canvas jobs, the sampler, the engines that run them, and model files."""
