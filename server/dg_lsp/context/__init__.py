"""What else of a workspace may help at a cursor: found in the background, read through the gate."""
