"""Training of the small code model: data, recipe and export."""
