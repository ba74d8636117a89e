"""The proofs beside other people's programs judge as they must: `cargo xtask test` runs this."""

import contextlib
import io
import unittest

import babel
import grow
import lab
import mutants
import pictures
import sumo
import upgrade


class Sumo(unittest.TestCase):
    def test_a_trace_is_read_by_who_comes_first(self):
        trace = (
            '<timestep time="0.00">\n<vehicle id="b" x="1.5" y="2"/>\n</timestep>\n'
            '<timestep time="1.00">\n<vehicle id="a" x="7" y="8"/>\n<vehicle id="b" x="3" y="2"/>\n'
        )
        self.assertEqual(sumo.drives(trace), [{0: (1.5, 2.0), 1: (3.0, 2.0)}, {1: (7.0, 8.0)}])

    def test_a_vehicle_elsewhere_is_noticed(self):
        drives = [{second: (float(second), 0.0) for second in range(20)}]
        line = '{{"at":{},"kind":"{}","node":9,"x":{},"y":0}}\n'.format

        def compare(off):
            moves = [line(second * 1_000_000, "move", second + off) for second in range(20)]
            with contextlib.redirect_stdout(io.StringIO()):
                sumo.compare(line(0, "join", 0) + "".join(moves), drives)

        compare(1.0)
        self.assertRaises(SystemExit, compare, 2.5)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertRaises(SystemExit, sumo.compare, "", drives)


class Babel(unittest.TestCase):
    def test_what_is_sent_in_the_window_counts(self):
        line = '{{"v":1,"at":{},"kind":"send","node":1,"bytes":60,"air":300}}\n'.format
        log = "".join(line(at) for at in [9, 10, 20, 10 + babel.WINDOW_S * 1_000_000])
        bytes_per_second, air = babel.sent(log, 10)
        self.assertEqual(bytes_per_second, 120 / babel.WINDOW_S)
        self.assertAlmostEqual(air, 600e-6 / babel.WINDOW_S)

    def test_unanswered_probes_are_counted(self):
        self.assertEqual(babel.lost("600 packets transmitted, 590 received, 1% loss", 600), 10)
        self.assertIsNone(babel.lost("", 600))


class Pictures(unittest.TestCase):
    def test_a_terminal_breaks_long_lines_and_forgets_what_was_cleared(self):
        shown = f"old\r\n{pictures.CLEAR}abcdef\r\n\r\nüüü  \r\n"
        self.assertEqual(pictures.seen(shown, 4), "abcd\nef\n\nüüü\n")
        self.assertEqual(pictures.seen("10 %\r\x1b[2K20 %\r\x1b[2Kdone\r\n", 80), "done\n")
        self.assertEqual(pictures.seen("", 4), "")


class Grow(unittest.TestCase):
    def test_every_patch_applies(self):
        self.assertEqual(list(grow.PATCHES), ["codec", "error", "hub-field", "limit"])
        for patch in grow.PATCHES.values():
            lab.git("apply", "--check", patch)

    def test_an_unknown_name_is_refused_with_the_list(self):
        with self.assertRaisesRegex(SystemExit, "there are codec, error, hub-field, limit"):
            grow.main(["crate"])


class Mutants(unittest.TestCase):
    LISTS = {
        "caught.txt": list("abcdefgh"),
        "timeout.txt": ["i"],
        "missed.txt": ["a.rs:1:2: replace + with -"],
        "unviable.txt": ["k", "l"],
    }

    def test_a_score_is_the_part_of_the_viable_ones(self):
        score = mutants.Score(self.LISTS.get)
        self.assertEqual((score.viable, score.unviable), (10, 2))
        self.assertGreaterEqual(score.part, mutants.CAUGHT_MIN)
        table = mutants.table({"seal": score})
        self.assertIn("90.0 %\n", table)
        self.assertTrue(table.endswith("missed in seal: a.rs:1:2: replace + with -\n"), table)
        nothing = mutants.Score(lambda name: [])
        self.assertLess(nothing.part, mutants.CAUGHT_MIN, "where nothing ran, nothing is shown")

    def test_samples_are_chosen_by_name_and_their_files_are_there(self):
        with self.assertRaisesRegex(SystemExit, "of seal, frame, group, hub"):
            mutants.main(["hug"])
        for package, files in mutants.SAMPLES.values():
            for file in files:
                found = (lab.ROOT / "crates" / package / "src").glob(file)
                self.assertTrue(any(found), f"{package}: {file}")


class Upgrade(unittest.TestCase):
    def test_this_suite_takes_a_program(self):
        folder = lab.ROOT / upgrade.SUITE[0]
        self.assertIn(upgrade.BINARY, (folder / "served.rs").read_text())
        for name in upgrade.IN_PROCESS:
            self.assertTrue((folder / f"{name.rstrip(':')}.rs").is_file(), name)

    def test_the_closing_line_is_read_and_no_other(self):
        line = "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out"
        self.assertEqual(upgrade.read(line), (2, 1, 5))
        self.assertIsNone(upgrade.read("running 3 tests"))


if __name__ == "__main__":
    unittest.main()
