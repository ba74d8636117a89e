"""The reader of live messages against bytes that tests compose."""

import struct
import unittest

import sealane
from sealane.live import MAX_TRIALS
from seal_writer import Message, announcement
from test_stored import handed, keys, term
from vectors import refusal

A, B, C = b"contextA", b"contextB", b"contextC"


class Reader:
    """A live reader with what it stored, and a clock that tests move."""

    def __init__(self, epochs=(0,), sessions=(), **others):
        self.stored, self.now = {}, 0.0
        held = keys(Message(), secrets={epoch: Message().secret for epoch in epochs})
        given = {"store": self.store, "clock": lambda: self.now}
        self.live = sealane.Live(held, sessions=sessions, **given, **others)

    def store(self, session: bytes):
        self.stored[session[1:3]] = session

    def restarted(self, **others) -> "Reader":
        after = Reader(self.live.keys.secrets, self.stored.values(), **others)
        after.stored.update(self.stored)
        return after

    def hear(self, message: Message, form: str = "full", announces: bool | None = None):
        """Opens a message and accepts it."""
        if announces is None:
            announces = message.klass == "S"
        heard = self.live.open(handed(message, form), announces)
        self.live.accept(heard)
        return heard

    def code(self, message: Message, *others) -> str | None:
        return refusal(lambda: self.hear(message, *others))


def starts(start: int, context: bytes = A, orders: int = 0, **others) -> Message:
    given = {"counter": 0, **others}
    return announcement(start, orders, context=context, **given)


def says(counter: int, context: bytes = A, **others) -> Message:
    return Message(counter=counter, context=context, **others)


class Sessions(unittest.TestCase):
    def test_what_is_announced_is_heard(self):
        for klass in "ACS":
            reader = Reader()
            self.assertEqual(reader.code(says(1, klass=klass), "full", False), "SL-SEAL-12")
            told = reader.hear(starts(10, orders=300)).announcement
            self.assertEqual(told, sealane.Announcement(10, 300))
            self.assertIsNone(reader.code(says(1, klass=klass), "compact", False))
            refused = reader.code(says(1, B, klass=klass), "full", False)
            self.assertEqual(refused, "SL-SEAL-12")

    def test_a_later_start_closes_the_earlier_session(self):
        reader = Reader()
        for start, context, expected in (
            (10, A, None),
            (9, B, "SL-SEAL-05"),
            (10, B, "SL-SEAL-05"),
            (11, B, None),
            (10, A, "SL-SEAL-05"),
            (12, A, None),
        ):
            self.assertEqual(reader.code(starts(start, context)), expected)
        self.assertEqual(reader.code(says(1, B)), "SL-SEAL-12")

    def test_a_start_counts_in_its_epoch(self):
        reader = Reader(epochs=(0, 1))
        reader.hear(starts(2**64 - 1))
        self.assertIsNone(reader.code(starts(9, B, epoch=1)))
        self.assertEqual(reader.code(starts(9, C, epoch=1)), "SL-SEAL-05")

    def test_a_session_announces_itself_again(self):
        reader = Reader()
        self.assertIsNone(reader.code(starts(10)))
        self.assertEqual(reader.code(starts(10)), "SL-SEAL-05")
        self.assertIsNone(reader.code(starts(10, orders=2, counter=1)))
        self.assertEqual(reader.code(says(1)), "SL-SEAL-05")

    def test_no_more_trials_than_the_caller_allows(self):
        reader = Reader()
        self.assertIsNone(reader.code(starts(10)))
        forged = starts(11, B, signing_seed=b"\x52" * 32)
        for _ in range(MAX_TRIALS - 1):
            self.assertEqual(reader.code(forged), "SL-SEAL-04")
        self.assertEqual(reader.code(forged), "SL-SEAL-14")
        self.assertEqual(reader.code(starts(12, C)), "SL-SEAL-14")
        self.assertIsNone(reader.code(starts(10, counter=1)))
        self.assertEqual(reader.code(says(1, B)), "SL-SEAL-12")
        reader.live.allow_trials(1)
        self.assertIsNone(reader.code(starts(12, C)))

    def test_the_window(self):
        reader = Reader()
        reader.hear(starts(10, counter=5000))
        for counter, expected in (
            (5001 - 1024, None),
            (5000 - 1024, "SL-SEAL-06"),
            (5001 - 1024, "SL-SEAL-05"),
            (5000, "SL-SEAL-05"),
            (5001, None),
            (5001 - 1024, "SL-SEAL-06"),
            (2**40 - 1, None),
            (2**40 - 2, None),
            (5002, "SL-SEAL-06"),
        ):
            self.assertEqual(reader.code(says(counter)), expected, counter)

    def test_epochs_that_were_left_behind(self):
        reader = Reader(epochs=(3, 4, 5, 6, 7))
        for epoch, expected in ((8, "SL-SEAL-08"), (5, "SL-SEAL-07"), (6, None)):
            self.assertEqual(reader.code(starts(10, epoch=epoch)), expected)
        self.assertIsNone(reader.code(says(0, epoch=7)))
        self.assertEqual(reader.code(says(1, epoch=6)), "SL-SEAL-07")
        self.assertEqual(reader.code(starts(11, B, epoch=6)), "SL-SEAL-05")
        self.assertEqual(reader.code(says(1, B, epoch=6)), "SL-SEAL-12")
        self.assertEqual(reader.code(starts(11, B, epoch=5)), "SL-SEAL-07")
        self.assertEqual(reader.code(says(0, epoch=7)), "SL-SEAL-05")

    def test_the_floor(self):
        reader = Reader(epochs=(6, 7), floor=7)
        self.assertEqual(reader.code(starts(10, epoch=6)), "SL-SEAL-07")
        self.assertIsNone(reader.code(starts(10, epoch=7)))

    def test_the_first_reason_counts(self):
        reader = Reader(epochs=(6, 7), own=7)
        altered = says(0, klass="P", epoch=3)
        for message, expected in (
            (altered, "SL-SEAL-09"),
            (says(0, epoch=3), "SL-SEAL-11"),
        ):
            self.assertEqual(reader.code(message), expected)
        reader = Reader(epochs=(5, 7))
        reader.live.keys.terms = [term(slot=8)]
        for message, expected in (
            (says(0, epoch=5), "SL-SEAL-07"),
            (says(0, epoch=6), "SL-SEAL-08"),
            (says(0, epoch=7), "SL-SEAL-10"),
            (says(0, epoch=7, slot=8), "SL-SEAL-12"),
        ):
            self.assertEqual(reader.code(message), expected)

    def test_what_is_refused_moves_nothing(self):
        reader = Reader()
        reader.hear(starts(10, counter=5))
        for message in (says(3000).but(secret=b"\0" * 32), starts(11, B, signing_seed=b"\0" * 32)):
            self.assertIsNotNone(reader.code(message))
        self.assertIsNone(reader.code(says(0)))

    def test_nothing_moves_before_it_is_accepted(self):
        reader = Reader()
        first, second = starts(10), starts(11, B)
        heard = [reader.live.open(handed(one), True) for one in (first, first, second)]
        self.assertEqual(reader.code(says(1)), "SL-SEAL-12")
        for one, expected in zip((*heard, heard[0]), (None, "SL-SEAL-05") * 2, strict=True):
            self.assertEqual(refusal(lambda: reader.live.accept(one)), expected)

    def test_repeats_are_refused_before_they_are_accepted(self):
        reader = Reader()
        for message in (starts(10), says(1)):
            reader.hear(message)
        for message in (says(1), starts(9, B), says(1, B)):
            is_announcement = message.klass == "S"
            work = lambda: reader.live.open(handed(message), is_announcement)
            self.assertIn(refusal(work), ("SL-SEAL-05", "SL-SEAL-12"))

    def test_only_announcements_in_class_s_announce(self):
        reader = Reader()
        told = struct.pack(">BQQ", 1, 10, 0)
        self.assertEqual(reader.code(says(1, body=told), "full", True), "SL-SEAL-09")
        for body in (told + b"\0", told[:-1], b"\x02" + told[1:]):
            self.assertEqual(reader.code(says(1, klass="S", body=body)), "SL-SEAL-20")


class AtRest(unittest.TestCase):
    def test_a_session_is_stored_before_it_is_accepted(self):
        reader = Reader(epochs=(3, 4))
        reader.hear(starts(10, counter=5, epoch=3))
        session = struct.pack(">BHQ8sQQ", 1, 7, 3, A, 10, 6)
        self.assertEqual(reader.stored, {b"\0\x07": session})

        def full(_):
            raise OSError("the disk is full")

        reader.live._store = full
        with self.assertRaises(OSError):
            reader.hear(says(0, epoch=4))
        reader.live._store = reader.store
        self.assertIsNone(reader.code(says(4, epoch=3)))

    def test_nothing_is_accepted_twice_after_a_restart(self):
        reader = Reader(epochs=(0, 1))
        accepted = [starts(10)] + [says(counter) for counter in range(1, 40, 3)]
        accepted += [starts(10, counter=100, epoch=1)] + [says(n, epoch=1) for n in (0, 120, 99)]
        for count, message in enumerate(accepted, 1):
            reader.hear(message)
            after = reader.restarted()
            for again in accepted[:count]:
                self.assertIsNotNone(after.code(again))
        after = reader.restarted()
        self.assertIsNone(after.code(says(1000, epoch=1)))
        self.assertEqual(after.code(starts(9, B, epoch=1)), "SL-SEAL-05")
        self.assertIsNone(after.code(starts(11, B, epoch=1)))

    def test_below_the_ceiling_the_window_tells_why(self):
        session = struct.pack(">BHQ8sQQ", 1, 7, 0, A, 10, 3000)
        reader = Reader(sessions=[session])
        for counter, expected in (
            (3000 - 1025, "SL-SEAL-06"),
            (3000 - 1024, "SL-SEAL-05"),
            (2999, "SL-SEAL-05"),
            (3000, None),
        ):
            self.assertEqual(reader.code(says(counter)), expected)

    def test_a_stored_ceiling_is_of_its_epoch(self):
        session = struct.pack(">BHQ8sQQ", 1, 7, 0, A, 10, 3000)
        for counters in ((0, 1, 2999), (2999, 2998, 2000)):
            reader = Reader(epochs=(0, 1), sessions=[session])
            for counter in counters:
                self.assertIsNone(reader.code(says(counter, epoch=1)))

    def test_ceilings_follow_the_sender(self):
        reader = Reader()
        reader.hear(starts(10))
        stored = lambda: struct.unpack(">Q", reader.stored[b"\0\x07"][27:])[0]
        self.assertEqual(stored(), 1)
        for seconds, counter, expected in (
            (0.25, 1, 3),
            (0, 2, 3),
            (0.25, 3, 7),
            (0.5, 6, 7),
            (0.25, 8, 10),
            (0.5, 10, 11),
            (0.25, 11, 13),
            (0.25, 20, 24),
            (0.75, 22, 24),
            (0.25, 21, 23),
            (1.5, 19, 23),
            (0, 23, 24),
        ):
            reader.now += seconds
            self.assertIsNone(reader.code(says(counter)))
            self.assertEqual(stored(), expected, counter)

    def test_ceilings_stay_near(self):
        reader = Reader()
        reader.hear(starts(10))
        for counter in range(1, 60_000, 10):
            reader.now += 0.0001
            reader.hear(says(counter))
            ceiling = reader.live.sessions[7].ceiling
            self.assertTrue(counter < ceiling <= counter + 16_384)
        self.assertEqual(reader.live.sessions[7].block, 16_384)

    def test_a_session_of_another_version_is_refused(self):
        session = struct.pack(">BHQ8sQQ", 1, 7, 0, A, 10, 3000)
        for data in (b"\x02" + session[1:], session[:-1], session + b"\0"):
            self.assertEqual(refusal(lambda: sealane.Session.decode(data)), "SL-SEAL-20")
        self.assertEqual(sealane.Session.decode(session).encode(), session)


if __name__ == "__main__":
    unittest.main()
