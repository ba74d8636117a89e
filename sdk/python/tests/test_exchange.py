"""The reader of what neighbours tell each other of documents, against the vectors."""

import unittest

import sealane
from sealane import exchange
from vectors import cases, refusal

CASES = cases("document/exchange.json")


def held(case: dict) -> list[exchange.Held]:
    return [exchange.hold(bytes.fromhex(frame), case["newest"]) for frame in case["held"]]


class Exchange(unittest.TestCase):
    def test_a_digest_is_of_all_that_is_held(self):
        for case in (case for case in CASES if "digest" in case):
            with self.subTest(case["name"]):
                groups = {bytes.fromhex(case["group"]): held(case)}
                self.assertEqual(exchange.digest(groups).hex(), case["digest"])

    def test_who_hears_an_overview_and_an_inventory_gives_what_is_lacking(self):
        for case in (case for case in CASES if "overview" in case):
            with self.subTest(case["name"]):
                overview = sealane.read_exchange(bytes.fromhex(case["overview"]))
                self.assertEqual(exchange.differing(held(case), overview), case["differing"])
                inventory = sealane.read_exchange(bytes.fromhex(case["inventory"]))
                given = exchange.lacking(held(case), inventory)
                self.assertEqual([one.frame.hex() for one in given], case["given"])

    def test_each_message_reads_or_is_refused_as_the_vectors_say(self):
        for case in (case for case in CASES if "message" in case):
            with self.subTest(case["name"]):
                message = bytes.fromhex(case["message"])
                if case["error"]:
                    refused = refusal(lambda: sealane.read_exchange(message))
                    self.assertEqual(refused, case["error"])
                    continue
                said = sealane.read_exchange(message)
                self.assertEqual(said["group"], case["message"][:8])
                if "frames" in case:
                    self.assertEqual(said["frames"], case["frames"])

    def test_an_inventory_says_of_each_frame_where_it_stands(self):
        case = next(case for case in CASES if case["name"] == "an inventory")
        all_held = held(next(case for case in CASES if case["name"] == "of all"))
        said = sealane.read_exchange(bytes.fromhex(case["message"]))
        self.assertTrue(said["is_opened"])
        stamps = {
            (origin["slot"], register["data_type"], tuple(stamp))
            for origin in said["origins"]
            for register in origin["registers"]
            for stamp in register["stamps"]
        }
        self.assertEqual(stamps, {(one.slot, one.data_type, one.stamp) for one in all_held})
        self.assertEqual(exchange.lacking(all_held, said), [])

    def test_an_overview_says_of_each_origin_what_is_held_of_it(self):
        case = next(case for case in CASES if case["name"] == "an overview of all")
        all_held = held(next(case for case in CASES if case["name"] == "of all"))
        said = sealane.read_exchange(bytes.fromhex(case["message"]))
        self.assertEqual((said["first"], said["last"]), (0, exchange.MAX_SLOT))
        self.assertEqual([slot for slot, _ in said["checks"]], [3, 300])
        self.assertEqual(exchange.differing(all_held, said), [])

    def test_a_message_that_is_cut_is_refused_or_says_less(self):
        for case in (case for case in CASES if case.get("error", "none") is None):
            whole = bytes.fromhex(case["message"])
            said = sealane.read_exchange(whole)
            for size in range(len(whole)):
                try:
                    self.assertNotEqual(sealane.read_exchange(whole[:size]), said, case["name"])
                except sealane.Refused:
                    continue


if __name__ == "__main__":
    unittest.main()
