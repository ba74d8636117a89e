"""The reader of frames against bytes that tests compose."""

import struct
import unittest

import sealane
from seal_writer import LINK, STREAM, Frame, Message, announcement, binding
from test_stored import keys, pair
from vectors import refusal

TOPIC = "fleet/7/location"
PLACE = binding(STREAM, TOPIC.encode())
NOW = 1_700_000_000_123


def frame(klass: str = "C", **others) -> Frame:
    message = pair(bound=PLACE) if klass == "P" else Message(klass, bound=PLACE)
    return Frame(message, **others)


def timed(klass: str = "S", body: bytes = b"help", **others) -> Frame:
    made = frame(klass, **{"data_type": 7, **others})
    return made.but(message=made.message.but(body=struct.pack("<Q", NOW) + body))


def link(made: Frame, **others) -> sealane.Link:
    place = (made.tag, made.message.slot)
    announced = {place: sealane.Announced(made.message.context, 512 + made.orders)}
    given = {"dictionary": {0: made.entry()}, "roster": {place: made.source}}
    given |= {"announced": announced, **others}
    return sealane.Link(made.next_hop, made.previous_hop, **given)


def full_code(made: Frame, data: bytes | None = None, binding: bytes = PLACE) -> str | None:
    data = made.full() if data is None else data
    return refusal(lambda: sealane.open(data, keys(made.message), binding))


def compact_code(made: Frame, data: bytes | None = None, **others) -> str | None:
    data = made.compact() if data is None else data
    known = link(made, **others)
    return refusal(lambda: sealane.open_compact(data, keys(made.message), known, PLACE))


class Forms(unittest.TestCase):
    def test_every_class_opens_in_both_forms(self):
        for klass in "ACSP":
            for data_type in (4, 300):
                made = frame(klass, data_type=data_type, orders=9)
                held, known = keys(made.message), link(made)
                for opened in (
                    sealane.open(made.full(), held, PLACE),
                    sealane.open_compact(made.compact(), held, known, PLACE),
                ):
                    with self.subTest(klass, data_type=data_type):
                        self.assertEqual(opened.header.encode(), made.header())
                        said = (opened.body, opened.klass, opened.slot, opened.epoch)
                        self.assertEqual(said, (made.message.body, klass, made.message.slot, 0))
                        self.assertEqual((opened.time_ms, opened.content), (None, said[0]))

    def test_a_gateway_without_keys_makes_the_full_form(self):
        for klass in "ACSP":
            made = frame(klass, orders=9)
            made = made.but(message=made.message.but(epoch=1001, counter=70000))
            for near in (1001 - 8, 1001 + 7):
                expanded = sealane.expand(made.compact(), link(made), near)
                self.assertEqual(expanded, made.full())

    def test_all_behind_the_hops_is_authentic(self):
        for klass in "ACSP":
            made = frame(klass)
            data = made.full()
            for at in range(len(data)):
                altered = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                code = full_code(made, altered)
                self.assertEqual(code is None, at < 17, (klass, at))

    def test_a_frame_opens_in_its_place_only(self):
        self.assertEqual(full_code(frame(), binding=sealane.BOUND_TO_LINK), "SL-SEAL-03")
        self.assertIsNone(full_code(frame(), binding=sealane.bound_to_stream(TOPIC)))

    def test_what_a_header_says_is_checked_in_order(self):
        made = frame()
        data = made.full()
        put = lambda at, byte, old=data: old[:at] + bytes([byte]) + old[at + 1 :]
        for code, altered in (
            ("SL-FRAME-01", put(17, 1)[:63]),
            ("SL-FRAME-02", put(17, 1, put(18, 4))),
            ("SL-FRAME-03", put(18, 4, put(19, 0xFF))),
            ("SL-FRAME-04", put(19, 0x30)[:70]),
            ("SL-FRAME-04", put(19, 0x41)),
            ("SL-FRAME-05", data[:70]),
            ("SL-FRAME-05", put(64, 0x0F) + bytes(9)),
            ("SL-FRAME-07", put(64, 0x0F, put(47, 9))),
            ("SL-FRAME-05", put(64, 0x11, put(47, 9))),
            ("SL-FRAME-08", put(47, 9)),
            ("SL-FRAME-08", put(19, made.flags ^ 1 ^ 3)),
        ):
            self.assertEqual(full_code(made, altered), code, altered.hex())
        large = struct.pack("<I", (1 << 20) - 255)
        altered = data[:43] + large + data[47:64] + b"\xff" * ((1 << 20) - 255 + 17)
        self.assertEqual(full_code(made, altered), "SL-FRAME-06")

    def test_what_is_urgent_begins_with_its_time(self):
        for data_type in (7, 8, 9, 10, 11):
            for klass in "SP":
                made = timed(klass, data_type=data_type)
                for opened in (
                    sealane.open(made.full(), keys(made.message), PLACE),
                    sealane.open_compact(made.compact(), keys(made.message), link(made), PLACE),
                ):
                    self.assertEqual((opened.time_ms, opened.content), (NOW, b"help"))
        self.assertIsNone(full_code(timed(body=b"")))
        for other in (timed(kind=1), timed(data_type=6)):
            opened = sealane.open(other.full(), keys(other.message), PLACE)
            self.assertEqual((opened.time_ms, opened.content), (None, opened.body))

    def test_a_time_that_is_cut_is_refused(self):
        made = frame("S", data_type=7)
        made = made.but(message=made.message.but(body=b"1234567"))
        self.assertEqual(full_code(made), "SL-FRAME-01")
        self.assertEqual(compact_code(made), "SL-FRAME-01")


class Compact(unittest.TestCase):
    def test_what_the_link_does_not_know_is_refused(self):
        made = frame()
        self.assertEqual(compact_code(made, dictionary={}), "SL-FRAME-12")
        self.assertEqual(compact_code(made, roster={}, announced={}), "SL-FRAME-14")
        self.assertEqual(compact_code(made, announced={}), "SL-FRAME-22")
        for context, expected in ((b"contextB", "SL-FRAME-22"), (b"otherctA", "SL-SEAL-03")):
            announced = {(made.tag, 7): sealane.Announced(context, 0)}
            self.assertEqual(compact_code(made, announced=announced), expected)

    def test_what_the_link_adds_is_authentic(self):
        made = frame(orders=3)
        announced = {(made.tag, 7): sealane.Announced(made.message.context, 4)}
        self.assertEqual(compact_code(made, announced=announced), "SL-SEAL-03")
        for at in range(4, 14):
            entry = made.entry()
            entry = entry[:at] + bytes([entry[at] ^ 4]) + entry[at + 1 :]
            self.assertEqual(compact_code(made, dictionary={0: entry}), "SL-SEAL-03")
        self.assertEqual(compact_code(made, roster={(made.tag, 7): b"somebody"}), "SL-SEAL-03")

    def test_what_does_not_fit_is_refused(self):
        # Key ids of pairs take a byte less.
        for klass, epoch, most in (("C", 0, 32), ("S", 9, 32), ("P", 0, 40)):
            for data_type, bits in ((255, most), (256, most - 8)):
                for counter, expected in ((2**bits - 1, None), (2**bits, "SL-FRAME-07")):
                    made = frame(klass, data_type=data_type)
                    message = made.message.but(counter=counter, epoch=epoch)
                    self.assertEqual(compact_code(made.but(message=message)), expected)

    def test_prefixes_are_checked_from_the_front(self):
        made, two = frame(), frame(data_type=300)
        data = made.compact()
        for code, altered in (
            ("SL-FRAME-01", data[:3]),
            ("SL-FRAME-02", b"\x05" + data[1:]),
            ("SL-FRAME-04", data[:1] + b"\0" + data[2:4] + b"\0" + data[4:]),
            ("SL-FRAME-07", data[:4] + b"\x80\x07" + data[5:]),
            ("SL-FRAME-05", data[:20]),
        ):
            if code == "SL-FRAME-04":
                altered = bytes([altered[0] | 0x40]) + altered[1:]
            self.assertEqual(compact_code(made, altered), code, altered.hex())
        self.assertEqual(compact_code(two, two.compact()[:4]), "SL-FRAME-01")
        as_signed = made.entry()[:-1] + bytes([made.flags ^ 3])
        self.assertEqual(compact_code(made, dictionary={0: as_signed}), "SL-FRAME-08")
        reserved = made.entry()[:-1] + b"\x41"
        self.assertEqual(compact_code(made, dictionary={0: reserved}), "SL-FRAME-04")
        self.assertEqual(compact_code(frame("P"), frame("P").compact()[:7]), "SL-FRAME-01")

    def test_a_relay_lowers_the_hop_limit_and_replaces_the_entry(self):
        made = frame(hop_limit=3)
        sent = sealane.forward_compact(made.compact(), 9)
        self.assertEqual(sent, made.but(hop_limit=2).compact(9))
        for data, code in (
            (made.compact()[:3], "SL-FRAME-01"),
            (b"\x01" + made.compact()[1:], "SL-FRAME-02"),
            (frame(hop_limit=0).compact(), "SL-FRAME-10"),
        ):
            self.assertEqual(refusal(lambda: sealane.forward_compact(data, 9)), code)


class Links(unittest.TestCase):
    def test_a_sender_announces_itself_and_is_heard_in_both_forms(self):
        made = frame(orders=44)
        reader, known = sealane.Live(keys(made.message)), link(made, announced={})
        told = announcement(10, 300, counter=0, bound=binding(LINK))
        greeting = made.but(message=told, kind=1, data_type=3)
        early = refusal(lambda: sealane.open_live(made.compact(), reader, PLACE, known))
        self.assertEqual(early, "SL-FRAME-22")
        opened = sealane.open_announcement(greeting.full(), reader)
        reader.accept(opened.heard)
        known.announce(opened)
        for counter in (4, 5):
            said = made.but(message=made.message.but(counter=counter))
            for data, given in ((said.compact(), known), (said.full(), None)):
                work = lambda: sealane.open_live(data, reader, PLACE, given)
                self.assertEqual(work().body, said.message.body)
            reader.accept(work().heard)
            self.assertEqual(refusal(work), "SL-SEAL-05")

    def test_what_is_no_announcement_is_refused(self):
        greeting = Frame(announcement(10, 300, bound=binding(LINK)), kind=1, data_type=3)
        for other, expected in (
            (greeting, None),
            (greeting.but(kind=0), "SL-FRAME-08"),
            (greeting.but(data_type=2), "SL-FRAME-08"),
            (greeting.but(message=greeting.message.but(klass="C")), "SL-FRAME-08"),
            (greeting.but(message=greeting.message.but(bound=PLACE)), "SL-SEAL-03"),
        ):
            reader = sealane.Live(keys(greeting.message))
            work = lambda: sealane.open_announcement(other.full(), reader)
            self.assertEqual(refusal(work), expected)


if __name__ == "__main__":
    unittest.main()
