"""Hours of use in minutes: windows that type, and something that breaks all the time."""
