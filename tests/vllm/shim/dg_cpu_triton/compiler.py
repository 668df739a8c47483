"""The compiler that Triton asks a backend for; nothing is ever compiled."""

from __future__ import annotations

from typing import Any

from triton.backends.compiler import BaseBackend


class InterpretedBackend(BaseBackend):
    """Says what it is and refuses to compile."""

    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: Any) -> bool:
        return target.backend == "cpu"

    def hash(self) -> str:
        return "interpreted"

    def parse_options(self, options: dict[str, Any]) -> Any:
        raise RuntimeError("Triton kernels run interpreted here; set TRITON_INTERPRET=1.")

    def add_stages(self, stages: dict[str, Any], options: Any, *rest: Any) -> None:
        self.parse_options({})

    def load_dialects(self, context: Any) -> None:
        pass

    def get_module_map(self) -> dict[str, Any]:
        return {}

    def pack_metadata(self, metadata: Any) -> tuple[()]:
        return ()

    def get_codegen_implementation(self, options: Any = None) -> dict[str, Any]:
        return {}
