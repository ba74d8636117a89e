"""Reads Sealane's frames. The specification is spec/seal.md, spec/frame.md and spec/document.md."""

from .compact_units import CompactLink
from .document import read_document
from .exchange import read_message as read_exchange
from .frame import (
    Announced,
    Header,
    Link,
    OpenedFrame,
    expand,
    forward,
    forward_compact,
    open,
    open_announcement,
    open_compact,
    open_live,
)
from .live import Announcement, Heard, Live, Session
from .refused import Refused
from .seal import (
    BOUND_TO_LINK,
    Keys,
    Opened,
    Sealed,
    Term,
    bound_to_conversation,
    bound_to_stream,
    open_stored,
    ratchet,
)
from .units import Joiner

__all__ = [
    "BOUND_TO_LINK",
    "Announced",
    "Announcement",
    "CompactLink",
    "Header",
    "Heard",
    "Joiner",
    "Keys",
    "Link",
    "Live",
    "Opened",
    "OpenedFrame",
    "Refused",
    "Sealed",
    "Session",
    "Term",
    "bound_to_conversation",
    "bound_to_stream",
    "expand",
    "forward",
    "forward_compact",
    "open",
    "open_announcement",
    "open_compact",
    "open_live",
    "open_stored",
    "ratchet",
    "read_document",
    "read_exchange",
]
