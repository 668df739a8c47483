"""Invented Python text for the tests of the training data."""

import random


def program(seed: int, functions: int = 12) -> str:
    """Python text that no other seed shares."""
    generator = random.Random(seed)
    names = [
        f"{generator.choice('abcdefgh')}{generator.randrange(10**6)}" for _ in range(functions)
    ]
    body = (
        f"def compute_{name}(value, scale):\n"
        f'    """Scales {name}."""\n'
        f"    total_{name} = value * scale\n"
        f"    if total_{name} > {generator.randrange(1000)}:\n"
        f"        return total_{name} - value\n"
        f"    return total_{name}\n"
        for name in names
    )
    return "import math\n\n\n" + "\n\n".join(body)
