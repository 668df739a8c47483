"""The second interface to the same."""

import sys

from torchvision.transforms import functional

sys.modules[f"{__name__}.functional"] = functional

__all__ = ["functional"]
