"""Holds the reader against vectors/seal."""

import unittest

import sealane
from vectors import cases, refusal


def keys(case: dict) -> sealane.Keys:
    return sealane.Keys(
        bytes.fromhex(case["group"]),
        case["suite"],
        case["pair"],
        {one["epoch"]: bytes.fromhex(one["secret"]) for one in case["secrets"]},
        {int(slot): bytes.fromhex(key) for slot, key in case.get("signers", {}).items()},
        case.get("near", 0),
    )


def parts(case: dict) -> tuple:
    return case["form"], bytes.fromhex(case["meta"]), bytes.fromhex(case["sealed"]), case["clear"]


class Seal(unittest.TestCase):
    def test_what_opens(self):
        for case in cases("seal/opened.json"):
            with self.subTest(case["name"]):
                opened = sealane.open_stored(keys(case), *parts(case))
                self.assertEqual(opened.body.hex(), case["body"])
                said = (opened.klass, opened.slot, opened.epoch, opened.counter)
                expected = tuple(case[name] for name in ("class", "slot", "epoch", "counter"))
                self.assertEqual(said, expected)

    def test_what_is_refused(self):
        for case in cases("seal/refused.json"):
            with self.subTest(case["name"]):
                code = refusal(lambda: sealane.open_stored(keys(case), *parts(case)))
                self.assertEqual(code, case["error"])

    def test_what_comes_live(self):
        for case in cases("seal/live.json"):
            live = sealane.Live(keys(case), case["own"])
            for number, step in enumerate(case["steps"]):
                with self.subTest(case["name"], step=number):
                    opened = []
                    code = refusal(lambda: opened.append(live.open(*parts(step))))
                    self.assertEqual(code, step.get("error"))
                    expected = [step["body"]] if "body" in step else []
                    self.assertEqual([one.body.hex() for one in opened], expected)
                    self.assertEqual(live.newest, step["newest"])

    def test_secrets_of_epochs(self):
        for case in cases("seal/epochs.json"):
            group = bytes.fromhex(case["group"])
            provisioned = bytes.fromhex(case["provisioned"])
            secret = sealane.Keys.provisioned(group, provisioned).secrets[0]
            expected = {one["epoch"]: one["secret"] for one in case["secrets"]}
            for epoch in range(max(expected) + 1):
                if epoch:
                    secret = sealane.ratchet(group, secret, epoch)
                self.assertEqual(secret.hex(), expected.get(epoch, secret.hex()))


if __name__ == "__main__":
    unittest.main()
