"""A Triton backend named `cpu`, so that vLLM takes its second model runner; it interprets."""
