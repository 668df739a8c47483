"""The language server: documents, prompts, suggestions and one module per LSP method."""
