"""Where the vectors lie."""

import json
from pathlib import Path

import sealane

FOLDER = Path(__file__).resolve().parents[3] / "vectors"


def cases(name: str) -> list[dict]:
    """The cases of a file."""
    return json.loads((FOLDER / name).read_text())


def refusal(work) -> str | None:
    """The code that `work` is refused with."""
    try:
        work()
    except sealane.Refused as refused:
        return refused.code
    return None
