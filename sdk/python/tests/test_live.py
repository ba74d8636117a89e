"""The reader of live messages against bytes that tests compose."""

import struct
import unittest

from sealane import formats as sealane
from sealane.formats.live import MAX_TRIALS
from seal_writer import Message, announcement
from test_stored import handed, keys, term
from vectors import refusal

A, B, C = b"contextA", b"contextB", b"contextC"


class Reader:
    """A live reader."""

    def __init__(self, epochs=(0,), **others):
        held = keys(Message(), secrets={epoch: Message().secret for epoch in epochs})
        self.live = sealane.Live(held, **others)

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
        self.assertEqual(reader.code(starts(10, counter=1)), "SL-SEAL-05")
        self.assertIsNone(reader.code(says(1)))

    def test_no_more_trials_than_the_caller_allows(self):
        reader = Reader()
        self.assertIsNone(reader.code(starts(10)))
        forged = starts(11, B, signing_seed=b"\x52" * 32)
        for _ in range(MAX_TRIALS):
            self.assertEqual(reader.code(forged), "SL-SEAL-04")
        self.assertEqual(reader.code(forged), "SL-SEAL-14")
        self.assertEqual(reader.code(starts(12, C)), "SL-SEAL-14")
        self.assertIsNone(reader.code(starts(10, counter=1)))
        self.assertEqual(reader.code(says(1, B)), "SL-SEAL-12")
        reader.live.allow_trials(1)
        self.assertIsNone(reader.code(starts(12, C)))

    def test_the_window(self):
        reader = Reader()
        reader.hear(starts(10))
        reader.hear(says(5000))
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
        self.assertIsNone(reader.code(starts(10, epoch=7)))
        self.assertEqual(reader.code(says(1, epoch=6)), "SL-SEAL-07")
        self.assertEqual(reader.code(starts(11, B, epoch=6)), "SL-SEAL-05")
        self.assertEqual(reader.code(says(1, B, epoch=6)), "SL-SEAL-12")
        self.assertEqual(reader.code(starts(11, B, epoch=5)), "SL-SEAL-07")
        self.assertEqual(reader.code(starts(10, epoch=7)), "SL-SEAL-05")

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
        self.assertIsNone(reader.code(says(6)))

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
        told = struct.pack(">BQQ", 2, 10, 0)
        self.assertEqual(reader.code(says(1, body=told), "full", True), "SL-SEAL-09")
        for body in (told + b"\0", told[:-1], b"\x01" + told[1:]):
            self.assertEqual(reader.code(says(1, klass="S", body=body)), "SL-SEAL-20")


Q, R = b"question", b"QUESTION"


class Questions(unittest.TestCase):
    def test_no_session_begins_without_an_answer(self):
        reader = Reader(requires=True)
        reader.live.ask(Q)
        for questions in (b"", Q, R + R):
            self.assertEqual(reader.code(starts(10, questions=questions)), "SL-SEAL-12")
            self.assertTrue(reader.live.lacks)
        self.assertIsNone(reader.code(starts(10, questions=bytes(8) + R + Q, counter=9)))
        self.assertEqual(reader.code(says(8)), "SL-SEAL-05")
        self.assertIsNone(reader.code(says(9)))

    def test_only_the_last_questions_count(self):
        for later, expected in ((15, None), (16, "SL-SEAL-12")):
            reader = Reader(requires=True)
            reader.live.ask(Q)
            for number in range(later):
                reader.live.ask(number.to_bytes(8, "big"))
            self.assertEqual(reader.code(starts(10, questions=bytes(8) + Q)), expected)

    def test_a_question_is_answered_once(self):
        reader = Reader()
        reader.hear(starts(10, questions=Q))
        self.assertEqual(reader.live.questions(), (None, [Q]))
        reader.hear(starts(10, questions=Q, counter=1))
        reader.hear(starts(10, questions=R, counter=2))
        self.assertEqual(reader.live.questions(), (None, [R]))

    def test_the_newest_announcement_of_a_slot_counts(self):
        reader = Reader(requires=True)
        reader.live.allow_trials(1)
        for start, context, question, expected in (
            (10, A, Q, "SL-SEAL-12"),
            (11, B, R, "SL-SEAL-12"),
            (10, A, Q, "SL-SEAL-12"),
            (9, C, Q, "SL-SEAL-14"),
        ):
            self.assertEqual(reader.code(starts(start, context, questions=question)), expected)
        self.assertEqual(reader.code(starts(11, B, questions=Q, counter=1)), "SL-SEAL-12")
        self.assertEqual(reader.live.questions(), (None, [Q]))

    def test_bodies(self):
        head = struct.pack(">BQQ", 2, 10, 7)
        for questions, expected in (
            (b"", (None, ())),
            (Q, (Q, ())),
            (Q + R, (Q, (R,))),
            (bytes(8) + R, (None, (R,))),
        ):
            told = sealane.Announcement.parse(head + questions)
            self.assertEqual((told.question, told.answers), expected)
        for body in (head + bytes(8), head + Q * 18, head + Q[1:], head[:9], b""):
            self.assertEqual(refusal(lambda: sealane.Announcement.parse(body)), "SL-SEAL-20")


class Forged(unittest.TestCase):
    def test_unsigned_frames_move_nothing_of_signed_ones(self):
        reader = Reader(epochs=(0, 1))
        reader.hear(starts(10))
        for message in (says(2**39), says(5, epoch=1)):
            self.assertIsNone(reader.code(message))
        self.assertEqual(reader.code(says(1)), "SL-SEAL-07")
        self.assertIsNone(reader.code(says(1, klass="S"), "full", False))
        self.assertIsNone(reader.code(starts(10, counter=2)))

    def test_an_answer_sets_the_window_back(self):
        reader = Reader()
        reader.hear(starts(10))
        reader.hear(says(9000))
        reader.hear(starts(10, counter=5))
        self.assertTrue(reader.live.lacks)
        reader.live.ask(Q)
        reader.hear(says(9001))
        self.assertIsNone(reader.code(starts(10, counter=6, questions=bytes(8) + Q)))
        for counter, expected in (
            (6, "SL-SEAL-05"),
            (9001, "SL-SEAL-05"),
            (9002 - 1024, "SL-SEAL-05"),
            (7, None),
            (8, None),
        ):
            self.assertEqual(reader.code(says(counter)), expected, counter)

    def test_counters_that_others_have_used_up(self):
        reader = Reader()
        reader.hear(starts(10))
        for counter in range(1, 9):
            reader.hear(says(counter))
        self.assertEqual(reader.code(says(1)), "SL-SEAL-05")
        reader.hear(starts(10, counter=2))
        self.assertTrue(reader.live.lacks)
        reader.live.ask(Q)
        reader.hear(says(10))
        self.assertIsNone(reader.code(starts(10, counter=3, questions=bytes(8) + Q)))
        for counter, expected in ((3, "SL-SEAL-05"), (4, None), (8, None), (10, "SL-SEAL-05")):
            self.assertEqual(reader.code(says(counter)), expected, counter)

    def test_closed_counters_open_before_the_sender_comes_to_them(self):
        reader = Reader()
        reader.hear(starts(10))
        reader.hear(says(2500))
        reader.hear(starts(10, counter=1))
        reader.live.ask(Q)
        reader.hear(starts(10, counter=2, questions=bytes(8) + Q))
        self.assertEqual(reader.code(says(2500)), "SL-SEAL-05")
        reader.hear(starts(10, counter=1500))
        self.assertIsNone(reader.code(says(2500)))

    def test_an_announcement_that_was_held_back_sets_nothing_back(self):
        reader = Reader()
        reader.hear(starts(10))
        late = starts(10, counter=1)
        for counter in range(2, 3000):
            reader.hear(says(counter))
        reader.hear(late)
        reader.live.ask(Q)
        self.assertEqual(reader.code(says(2500)), "SL-SEAL-05")
        reader.hear(starts(10, counter=3000, questions=bytes(8) + Q))
        self.assertEqual(reader.code(says(2500)), "SL-SEAL-05")
        self.assertIsNone(reader.code(says(3001)))


if __name__ == "__main__":
    unittest.main()
