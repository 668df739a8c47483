"""As much of torchvision as importing image processors takes; text-only models use none."""

from torchvision import io, transforms

__all__ = ["io", "transforms"]
__version__ = "0.28.0"
