"""Syntax trees of what stands around a cursor and of whole files, by tree-sitter."""
