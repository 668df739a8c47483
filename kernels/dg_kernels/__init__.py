"""Triton kernels and their PyTorch references; imports torch and triton only."""
