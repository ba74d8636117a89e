"""Holds the reader against vectors/seal."""

import unittest

import sealane
from vectors import cases, refusal


class Stopped(Exception):
    """The reader stops after it has stored a session."""


def keys(case: dict) -> sealane.Keys:
    return sealane.Keys(
        bytes.fromhex(case["group"]),
        case["suite"],
        case["pair"],
        {one["epoch"]: bytes.fromhex(one["secret"]) for one in case["secrets"]},
        terms(case["terms"]),
        case.get("near", 0),
    )


def terms(given: list[dict] | None) -> list[sealane.Term] | None:
    if given is None:
        return None
    return [
        sealane.Term(one["slot"], one["since"], one["until"], bytes.fromhex(one["key"]))
        for one in given
    ]


def place(given: dict) -> bytes:
    if given["kind"] == "stream":
        return sealane.bound_to_stream(given["name"])
    if given["kind"] == "conversation":
        return sealane.bound_to_conversation(bytes.fromhex(given["name"]))
    return sealane.BOUND_TO_LINK


def handed(case: dict) -> sealane.Sealed:
    sealed, context, meta = (bytes.fromhex(case[name]) for name in ("sealed", "context", "meta"))
    return sealane.Sealed(
        sealed, context, place(case["binding"]), meta, case["form"], case["clear"]
    )


class LiveReader:
    """A live reader that goes through the steps of a case."""

    def __init__(self, test: unittest.TestCase, case: dict):
        self.test, self.own, self.keys = test, case["own"], keys(case)
        self.now, self.stored = 0.0, None
        self.start([])

    def start(self, sessions: list[str]):
        self.live = sealane.Live(
            self.keys,
            self.own,
            sessions=[bytes.fromhex(session) for session in sessions],
            store=self.store,
            clock=lambda: self.now,
        )

    def store(self, session: bytes):
        self.stored = session.hex()
        if self.stops:
            raise Stopped

    def step(self, step: dict):
        match step["do"]:
            case "secret":
                self.keys.secrets[step["epoch"]] = bytes.fromhex(step["secret"])
            case "allow trials":
                self.live.allow_trials()
            case "floor":
                self.live.floor = step["epoch"]
            case "restart":
                self.start(step["sessions"])
            case _:
                self.hear(step)

    def hear(self, step: dict):
        self.now, self.stored = step["now"] / 1000, None
        self.stops = step.get("accepted") is False
        announces, heard = step["do"] == "announcement", []
        work = lambda: heard.append(self.live.open(handed(step), announces))
        self.test.assertEqual(refusal(work), step.get("error"))
        for one in heard:
            try:
                self.live.accept(one)
            except Stopped:
                self.test.assertTrue(self.stops)
            self.check(step, one)

    def check(self, step: dict, heard: sealane.Heard):
        self.test.assertEqual(self.stored, step["stored"])
        if heard.announcement is None:
            self.test.assertEqual(heard.opened.body.hex(), step["body"])
        else:
            said = (heard.announcement.start, heard.announcement.orders)
            self.test.assertEqual(said, (step["start"], step["orders"]))


class Seal(unittest.TestCase):
    def test_what_opens(self):
        for case in cases("seal/opened.json"):
            with self.subTest(case["name"]):
                opened = sealane.open_stored(keys(case), handed(case))
                self.assertEqual(opened.body.hex(), case["body"])
                said = (opened.klass, opened.slot, opened.epoch, opened.counter)
                expected = tuple(case[name] for name in ("class", "slot", "epoch", "counter"))
                self.assertEqual(said, expected)

    def test_what_is_refused(self):
        for case in cases("seal/refused.json"):
            with self.subTest(case["name"]):
                code = refusal(lambda: sealane.open_stored(keys(case), handed(case)))
                self.assertEqual(code, case["error"])

    def test_places(self):
        for case in cases("seal/opened.json") + cases("seal/refused.json"):
            self.assertEqual(place(case["binding"]).hex(), case["binding"]["bytes"])

    def test_what_comes_live(self):
        for case in cases("seal/live.json"):
            reader = LiveReader(self, case)
            for number, step in enumerate(case["steps"]):
                with self.subTest(case["name"], step=number):
                    reader.step(step)

    def test_secrets_of_epochs(self):
        for case in cases("seal/epochs.json"):
            group, secret = bytes.fromhex(case["group"]), bytes.fromhex(case["secret"])
            following = sealane.ratchet(group, secret, case["epoch"] + 1)
            self.assertEqual(following.hex(), case["next"])


if __name__ == "__main__":
    unittest.main()
