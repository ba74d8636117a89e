"""How many small faults in a crate its own tests find.

    mutants.py [seal | frame | group | hub]

cargo-mutants breaks one function or operator at a time and runs the crate's tests. A sample is
every k-th of the mutants of the files that are named here, so that it is the same each time and
takes a bounded time.
"""

import os
import subprocess
import sys
import time

import lab

# The part of the viable mutants that has to be caught.
CAUGHT_MIN = 0.9
# Mutants of a crate, at most, and the minutes after which no crate is begun.
MUTANTS_MAX = int(os.environ.get("SEALANE_MUTANTS", 25))
MINUTES_MAX = int(os.environ.get("SEALANE_MINUTES", 120))
# The time limits for the tests of one mutant: a multiple of their time without a mutant, and a
# least number of seconds. If the tests take longer, they have noticed the mutant.
LIMITS = "--timeout-multiplier 4 --minimum-test-timeout 180 --build-timeout 600".split()
# The hub's model takes fewer steps than the tests take otherwise: it runs once for each mutant.
MODEL = {"SEALANE_SEEDS": "30", "SEALANE_STEPS": "30000"}
# The laboratory's tests notice mutants that no other test does.
TESTS = ["--", "--", "--include-ignored", "--skip", "as_process_"]
# A module, and the modules within it.
GLOBS = "*.rs", "/*.rs"
# The package whose tests are run, and the files below its sources that are broken.
SAMPLES = {
    "seal": ("sealane-seal", ["**/*.rs"]),
    "frame": ("sealane-frame", ["**/*.rs"]),
    "group": ("sealane-group", ["**/*.rs"]),
    "hub": (
        "sealane-stream",
        [f"{name}{end}" for name in ("consumer", "subscription", "writer") for end in GLOBS],
    ),
}
# Tests beside the code are no code to break, and `agreed.rs` is a kind of groups for the tests of
# `sealane`, behind a feature.
EXCLUDED = ["**/tests.rs", "**/model/**", "**/agreed.rs"]
# Mutants that change nothing that a program can see, by a part of their name: what a debugger is
# shown, room that is reserved, and what only debug assertions ask.
EQUIVALENT = "Debug for|::capacity ->|::holds_together -> bool with true"


class Score:
    """How the mutants of a sample ended, by the lists of cargo-mutants."""

    def __init__(self, lines):
        # A test that does not end has noticed its mutant.
        self.caught = len(lines("caught.txt")) + len(lines("timeout.txt"))
        self.missed, self.unviable = lines("missed.txt"), len(lines("unviable.txt"))
        self.viable = self.caught + len(self.missed)
        # Where nothing ran, nothing is shown.
        self.part = self.caught / self.viable if self.viable else 0.0


def sample(name):
    package, files = SAMPLES[name]
    command = ["cargo", "mutants", "--package", package, "--exclude-re", EQUIVALENT]
    command += [word for file in files for word in ("--file", f"crates/{package}/src/{file}")]
    command += [word for file in EXCLUDED for word in ("--exclude", file)]
    every = len(lab.output(*command, "--list", cwd=lab.ROOT).splitlines())
    shards = max(-(-every // MUTANTS_MAX), 1)
    print(f"\n{name}: one in {shards} of {every} mutants", flush=True)
    folder = lab.TARGET / "mutants" / name
    folder.mkdir(parents=True, exist_ok=True)
    command += ["--shard", f"0/{shards}", "--sharding", "round-robin", *LIMITS]
    command += ["--colors", "never", "--output", str(folder), *TESTS]
    # Dependencies are built once for all samples.
    build = {"CARGO_TARGET_DIR": str(lab.TARGET / "mutants/build")}
    ended = subprocess.run(command, cwd=lab.ROOT, env={**os.environ, **MODEL, **build}).returncode
    # 2 says that some were missed, 3 that tests did not end; all else is a fault.
    if ended not in (0, 2, 3):
        sys.exit(f"{name}: cargo mutants: {ended}")

    def lines(file):
        path = folder / "mutants.out" / file
        return [line for line in path.read_text().splitlines() if line] if path.is_file() else []

    return Score(lines)


def table(scores):
    text = "\nsample  viable  caught  missed  unviable   caught\n"
    for name, score in scores.items():
        counts = f"{score.viable:6}  {score.caught:6}  {len(score.missed):6}  {score.unviable:8}"
        text += f"{name:6}  {counts}  {score.part * 100:5.1f} %\n"
    missed = [f"missed in {name}: {line}\n" for name, one in scores.items() for line in one.missed]
    return text + "".join(missed)


def main(arguments):
    if len(arguments) > 1 or not set(arguments) <= SAMPLES.keys():
        sys.exit(f"one sample or none, please, of {', '.join(SAMPLES)}")
    if subprocess.run(["cargo", "mutants", "--version"], capture_output=True).returncode:
        sys.exit("cargo-mutants is missing; run: cargo install cargo-mutants --locked")
    began, scores, faults = time.monotonic(), {}, []
    for name in arguments or SAMPLES:
        if time.monotonic() - began > MINUTES_MAX * 60:
            faults.append(f"{name}: not begun after {MINUTES_MAX} minutes")
            continue
        scores[name] = sample(name)
        if scores[name].part < CAUGHT_MIN:
            faults.append(f"{name}: {scores[name].part * 100:.1f} % caught")
    print(table(scores), end="", flush=True)
    if faults:
        demanded = f"of the viable mutants {CAUGHT_MIN * 100:.0f} % have to be caught"
        sys.exit(f"{demanded}: {', '.join(faults)}")


if __name__ == "__main__":
    main(sys.argv[1:])
