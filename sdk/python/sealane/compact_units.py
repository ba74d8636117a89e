"""Units of compact links: spec/frame.md, sections Dictionary and Units of compact links."""

from .refused import Refused
from .units import Joiner, batch_items

ENTRY = 14
HEADER = 64
RELAY = 17
BROADCAST = b"\xff" * 8
PAIR = 3
MAX_SHORT_UNIT = 63
FIXED = 64
FIXED_GROUPS = 2


def fixed(groups: list[bytes]) -> dict[int, bytes]:
    """What is said to everybody on a medium of these groups, by byte."""
    entries = {}
    for number, group in enumerate(groups[:FIXED_GROUPS]):
        for low in range(FIXED):
            klass, priority, codec = low >> 4, low >> 2 & 3, low & 3
            named = bytes(4) if klass == PAIR else group
            flags = priority << 2 | klass
            entries[number * FIXED + low] = named + BROADCAST + bytes([codec, flags])
    return entries


def own_byte(entry: bytes) -> int:
    """The byte that an entry has on a medium."""
    mixed = 0x811C9DC5
    for byte in entry:
        mixed = (mixed ^ byte) * 0x01000193 & 0xFFFFFFFF
    return 0x80 | (mixed ^ mixed >> 16) & 0x7F


class CompactLink:
    """Gives the frames of what a compact link hands over, those of the full form whole. It has no
    clock: on a medium no entry gives way for having been idle."""

    def __init__(self, next_hop: bytes, previous_hop: bytes, groups: list[bytes] | None = None):
        self._hops = next_hop + previous_hop
        self._is_medium = groups is not None
        self._fixed = fixed(groups or [])
        #: Entries by byte.
        self.dictionary = dict(self._fixed)
        self._joiner = Joiner()
        self._short: dict[int, _Partial] = {}

    def push(self, unit: bytes) -> list[bytes]:
        """Takes a unit; gives the frames that are complete with it."""
        if not unit:
            raise Refused("SL-FRAME-01")
        mark = unit[0]
        if mark >= 0x80 or mark == 2:
            return [self._frame(unit)]
        if mark >= 0x40:
            return self._part(unit)
        if mark == 0:
            return [self._joined(whole) for whole in self._joiner.push(unit)]
        if mark == 1:
            return [frame for item in batch_items(unit) for frame in self.push(item)]
        if mark == 3:
            return self._define(unit)
        if mark == 4:
            _exactly(unit, 2)
            return []
        raise Refused("SL-FRAME-02")

    def _frame(self, unit: bytes) -> bytes:
        if unit[0] >= 0x80:
            return unit
        if len(unit) < 2 + HEADER - RELAY:
            raise Refused("SL-FRAME-01")
        return self._hops + unit[1:]

    def _joined(self, whole: bytes) -> bytes:
        if whole[0] < 0x80 and whole[0] != 2:
            # Another unit has to be one, before it is refused for not being a frame.
            CompactLink(self._hops[:8], self._hops[8:]).push(whole)
            raise Refused("SL-FRAME-16")
        return self._frame(whole)

    def _define(self, unit: bytes) -> list[bytes]:
        _exactly(unit, 2 + ENTRY)
        byte, entry = unit[1], unit[2:]
        flags = entry[13]
        if flags >= 0x30 or flags & 3 == PAIR and any(entry[:4]):
            raise Refused("SL-FRAME-04")
        known = self.dictionary.get(byte)
        if known == entry:
            return []
        if self._is_medium:
            is_free = known is None or entry < known
            if byte in self._fixed or byte != own_byte(entry) or not is_free:
                raise Refused("SL-FRAME-13")
        elif known is not None:
            raise Refused("SL-FRAME-13")
        self.dictionary[byte] = entry
        return []

    def _part(self, unit: bytes) -> list[bytes]:
        if len(unit) < 3:
            raise Refused("SL-FRAME-01")
        word = int.from_bytes(unit[:2], "big")
        ident, is_last, index = word >> 7 & 0x7F, bool(word & 0x40), word & 0x3F
        if len(unit) > MAX_SHORT_UNIT or is_last and index == 0:
            raise Refused("SL-FRAME-16")
        partial = self._short.setdefault(ident, _Partial())
        partial.add(index, is_last, unit[2:])
        if not partial.is_whole():
            return []
        del self._short[ident]
        return [self._joined(partial.join())]


class _Partial:
    """The parts of one frame."""

    def __init__(self):
        self.parts: dict[int, bytes] = {}
        self.last: int | None = None
        self.stride: int | None = None

    def add(self, index: int, is_last: bool, part: bytes) -> None:
        if index in self.parts:
            if self.parts[index] != part or is_last != (index == self.last):
                raise Refused("SL-FRAME-18")
            return
        last = index if is_last else self.last
        stride = self.stride if is_last or self.stride is not None else len(part)
        if is_last:
            fits = self.last is None and all(index > other for other in self.parts)
        else:
            fits = len(part) == stride and (self.last is None or index < self.last)
        end = part if is_last else self.parts.get(self.last, b"")
        if not fits or stride is not None and len(end) > stride:
            raise Refused("SL-FRAME-17")
        self.last, self.stride = last, stride
        self.parts[index] = part

    def is_whole(self) -> bool:
        return self.last is not None and len(self.parts) == self.last + 1

    def join(self) -> bytes:
        return b"".join(self.parts[index] for index in sorted(self.parts))


def _exactly(unit: bytes, length: int) -> None:
    if len(unit) < length:
        raise Refused("SL-FRAME-01")
    if len(unit) > length:
        raise Refused("SL-FRAME-05")
