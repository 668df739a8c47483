"""Functions on images."""

from torchvision._nothing import nothing as __getattr__
from torchvision.transforms import InterpolationMode

__all__ = ["InterpolationMode", "__getattr__"]
