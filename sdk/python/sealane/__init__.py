"""Reads Sealane's frames. The specification is spec/seal.md and spec/frame.md."""

from .frame import Header, Link, OpenedFrame, forward, open, open_compact
from .refused import Refused
from .seal import Keys, Live, Opened, open_stored, ratchet
from .units import Joiner

__all__ = [
    "Header",
    "Joiner",
    "Keys",
    "Link",
    "Live",
    "Opened",
    "OpenedFrame",
    "Refused",
    "forward",
    "open",
    "open_compact",
    "open_stored",
    "ratchet",
]
