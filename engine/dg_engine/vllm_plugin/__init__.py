"""DiffusionGemma in vLLM with canvas jobs: pins, seeds, wanted regions and drafts at every step.

`register` is what vLLM loads in each of its processes. The modules that import no vLLM (`request`,
`drafts`, `draws`, `states`, `canvas_sampler`) are tested without it.
"""
