"""Data sets on disk: found, read, or refused with one error that says where to get them.

Knows where each set is published, not what is inside.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wellworn.core.errors import InvalidInput

PUBLISHED = {
    "locomo": "snap-research/locomo",
    "realmem": "zhiyuan5986/RealMemBench",
    "multihop": "OSU-NLP-Group/HippoRAG",
}


def hint(dataset: str) -> str:
    """Where a user gets the files."""
    return f"Dataset not shipped: get its files from the public repository {PUBLISHED[dataset]}"


def json_files(dataset: str, folder: Path) -> list[Path]:
    """The folder's JSON files by name (or the one file given), at least one."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise InvalidInput("--data", f"no folder {str(folder)!r}", hint(dataset))
    found = sorted(folder.glob("*.json"))
    if not found:
        raise InvalidInput("--data", f"no .json file in {str(folder)!r}", hint(dataset))
    return found


def read_json(path: Path) -> Any:  # whatever the file holds; the loader checks it
    """The file's JSON value."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("--data", f"cannot read {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput("--data", f"{str(path)!r} is not JSON: {error}") from None


def misshapen(dataset: str, path: Path, missing: str) -> InvalidInput:
    """The error for a file that is JSON but not of this set."""
    return InvalidInput("--data", f"{str(path)!r} is not a {dataset} file: {missing}", hint(dataset))
