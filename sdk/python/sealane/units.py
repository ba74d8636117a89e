"""Fragments and batches: spec/frame.md, section Units."""

from .refused import Refused

MAX_FRAME = 1 << 20
MAX_FRAGMENTS = 8192


class Joiner:
    """Gives the frames of what one neighbour hands over. It has no bounds of memory and age."""

    def __init__(self):
        #: By id: length, stride, and the parts by index.
        self._partials: dict[int, tuple[int, int, dict[int, bytes]]] = {}

    def push(self, unit: bytes) -> list[bytes]:
        """Takes a unit; gives the frames that are complete with it."""
        if not unit:
            raise Refused("SL-FRAME-01")
        if unit[0] == 0:
            return self._fragment(unit)
        if unit[0] == 1:
            return [frame for item in batch_items(unit) for frame in self.push(item)]
        return [unit]

    def _fragment(self, unit: bytes) -> list[bytes]:
        if len(unit) < 9:
            raise Refused("SL-FRAME-01")
        number = lambda start, size: int.from_bytes(unit[start : start + size], "little")
        ident, place, length, part = number(1, 2), number(3, 2), number(5, 3), unit[8:]
        index, is_last = place & 0x7FFF, place >= 0x8000
        stride = _stride(index, is_last, length, part)
        known = self._partials.setdefault(ident, (length, stride, {}))
        if known[:2] != (length, stride):
            raise Refused("SL-FRAME-17")
        parts = known[2]
        if parts.setdefault(index, part) != part:
            raise Refused("SL-FRAME-18")
        if len(parts) < -(-length // stride):
            return []
        del self._partials[ident]
        return [b"".join(parts[index] for index in sorted(parts))]


def _stride(index: int, is_last: bool, length: int, part: bytes) -> int:
    before = length - len(part)
    if before < 0 or length > MAX_FRAME:
        raise Refused("SL-FRAME-16")
    if is_last:
        stride = before // index if index and before % index == 0 else 0
        fits = len(part) <= stride
    else:
        stride = len(part)
        fits = index * stride < before
    if not fits or -(-length // stride) > MAX_FRAGMENTS:
        raise Refused("SL-FRAME-16")
    return stride


def batch_items(batch: bytes) -> list[bytes]:
    """What a batch holds."""
    at, items = 1, []
    while at < len(batch):
        length, at = batch[at], at + 1
        if length & 0x80:
            if at == len(batch):
                raise Refused("SL-FRAME-20")
            length, at = (length & 0x7F) << 8 | batch[at], at + 1
            if length < 0x80:
                raise Refused("SL-FRAME-20")
        item = batch[at : at + length]
        if not item or len(item) < length or item[0] == 1:
            raise Refused("SL-FRAME-20")
        items.append(item)
        at += length
    if not items:
        raise Refused("SL-FRAME-20")
    return items
