"""wellworn: memory for AI agents that gets better with use.

    from wellworn import Memory

    mem = Memory("memory.db")
    ada = mem.for_user("ada")
    ada.remember("Ada prefers tokio over async-std.", kind="preference")
    print(ada.recall("which async runtime does Ada like?")[0].text)

This module holds the public names. They load on first use, so `import wellworn` stays quick.
"""

from wellworn.core.lazy import lazy

__version__ = "0.2.0"
__all__, __getattr__, __dir__ = lazy(__name__)
__all__ += ["__version__"]
