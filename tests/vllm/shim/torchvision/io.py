"""Reading images."""

from torchvision._nothing import nothing as __getattr__

__all__ = ["__getattr__"]
