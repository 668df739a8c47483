"""Which files a module may be, by what it is called in an import."""

from __future__ import annotations

import posixpath

_JS_ENDINGS = (
    *(".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs"),
    *("/index.ts", "/index.tsx", "/index.js", "/index.jsx"),
)
_JS_ALIASES = ("@/", "~/")
"""What build tools let stand for a project's own folder of sources."""


def candidates(module: str, language: str, importer: str) -> list[str]:
    """Where a module may be, the likelier first.

    One that starts with `/` is the path of a file; others are ends of paths, as `a/b.py`. One that
    ends with `/` is a folder all of whose files are meant. `importer` is an absolute path.
    """
    here = posixpath.dirname(importer)
    match language:
        case "python":
            return _python(module, here)
        case "javascript" | "javascriptreact" | "typescript" | "typescriptreact":
            return _javascript(module, here)
        case "go":
            parts = module.split("/")
            return ["/".join(parts[-2:]) + "/", parts[-1] + "/"] if len(parts) > 1 else []
        case "rust":
            return _rust(module, importer)
        case "c" | "cpp":
            return [posixpath.normpath(f"{here}/{module}"), posixpath.normpath(module).lstrip("./")]
        case "java":
            return [module.replace(".", "/") + ".java"]
        case "ruby":
            path = module if module.endswith(".rb") else module + ".rb"
            return [posixpath.normpath(f"{here}/{path}")] if path.startswith(".") else [path]
        case _:
            return []


def _python(module: str, here: str) -> list[str]:
    bare = module.lstrip(".")
    path = bare.replace(".", "/")
    level = len(module) - len(bare)
    if not level:
        return [f"{path}.py", f"{path}/__init__.py", f"{path}.pyi"]
    for _ in range(level - 1):
        here = posixpath.dirname(here)
    if not path:
        return [f"{here}/__init__.py"]
    return [f"{here}/{path}.py", f"{here}/{path}/__init__.py", f"{here}/{path}.pyi"]


def _javascript(module: str, here: str) -> list[str]:
    for ending in (".js", ".mjs", ".jsx", ".ts", ".tsx"):
        # What is written `./a.js` may be `a.ts` before it is compiled.
        module = module.removesuffix(ending)
    if module.startswith("."):
        path = posixpath.normpath(f"{here}/{module}")
        return [path + ending for ending in _JS_ENDINGS]
    for alias in _JS_ALIASES:
        if module.startswith(alias):
            return [module.removeprefix(alias) + ending for ending in _JS_ENDINGS]
    return [module + ending for ending in _JS_ENDINGS] if "/" in module else []


def _rust(module: str, importer: str) -> list[str]:
    first, *rest = module.split("::")
    here, name = posixpath.split(importer)
    own = here if name in ("mod.rs", "lib.rs", "main.rs") else importer.removesuffix(".rs")
    path = "/".join(rest)
    match first:
        case "crate":
            base = "src"
        case "self":
            base = own
        case "super":
            base = posixpath.dirname(own)
        case _:
            base, path = "src", "/".join([first, *rest])
    if not path:
        return [f"{base}/lib.rs", f"{base}/mod.rs"] if base == "src" else [f"{base}/mod.rs"]
    return [f"{base}/{path}.rs", f"{base}/{path}/mod.rs"]
