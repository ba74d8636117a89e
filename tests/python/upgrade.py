"""The client library's tests of an earlier commit against this commit's node, and the reverse.

    upgrade.py [COMMIT]   without it, the commit before this one

The suite starts the program that an environment variable names, so that both commits need to know
that variable and nothing else of each other.
"""

import os
import re
import subprocess
import sys

import lab

# Names the program to the suite.
BINARY = "SEALANE_NODE_BINARY"
# Where the suite is, and what its target is called; and the same of commits before each crate had
# one test target.
SUITE = "crates/sealane/tests/it", "it"
SUITE_BEFORE = "crates/sealane/tests/client", "client"
# Tests that reach into a node of their own process, by a part of their name.
IN_PROCESS = ["speaks_tls::"]


def check_support(commit):
    """A suite that does not know the variable would test its own node, and show nothing."""
    folders = [SUITE[0], SUITE_BEFORE[0]]
    search = ["git", "grep", "--quiet", BINARY, commit, "--", *folders]
    if subprocess.run(search, cwd=lab.ROOT).returncode:
        knows = lab.git("log", "--reverse", "--format=%h", "-S", BINARY, "--", *folders)
        first = (knows or "none so far").split("\n")[0]
        sys.exit(f"the tests of {commit:.12} know no {BINARY}; the first commit that does: {first}")


class Side:
    """One of the two commits.

    It has a target folder of its own: cargo names what it builds by paths below the tree, so that
    in one target folder it takes what it built of the other commit for what it has to build.
    """

    def __init__(self, folder, target):
        self.folder, self.target = folder, target
        self.options = {"cwd": folder, "env": {**os.environ, "CARGO_TARGET_DIR": str(target)}}

    def build(self):
        lab.run("cargo", "build", "--package", "sealane-cli", **self.options)
        return self.target / "debug/sealane"

    def suite(self, node):
        """Runs its suite against a program; how many tests passed, failed and were left out."""
        target = (SUITE_BEFORE if (self.folder / SUITE_BEFORE[0]).is_dir() else SUITE)[1]
        command = ["cargo", "test", "--package", "sealane", "--test", target, "--"]
        command += [word for name in IN_PROCESS for word in ("--skip", name)]
        self.options["env"][BINARY] = str(node)
        print(f"$ {BINARY}={node} {' '.join(command)}", flush=True)
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **self.options)
        counts = None
        for line in child.stdout:
            print(line, end="", flush=True)
            counts = read(line) or counts
        if child.wait() not in (0, 101) or not counts:
            sys.exit(f"{' '.join(command)}: {child.returncode}, and no test ran")
        return counts


def read(line):
    """The counts in the closing line of a test program."""
    if line.startswith("test result: "):
        of = lambda word: int(re.search(rf"(\d+) {word}", line)[1])
        return of("passed"), of("failed"), of("filtered out")
    return None


def main(arguments):
    if len(arguments) > 1:
        sys.exit("one commit, please")
    commit = arguments[0] if arguments else "HEAD^"
    earlier = lab.git("rev-parse", "--verify", f"{commit}^{{commit}}")
    check_support(earlier)
    told, failures = [], []
    with lab.worktree(earlier, lab.TARGET / "upgrade/tree") as tree:
        before, now = Side(tree, lab.TARGET / "upgrade/build"), Side(lab.ROOT, lab.TARGET)
        for side, clients, node in [
            (f"clients of {earlier:.12} at this node", before, now),
            (f"clients of this commit at the node of {earlier:.12}", now, before),
        ]:
            passed, failed, filtered = clients.suite(node.build())
            left_out = f"{filtered} left out ({', '.join(IN_PROCESS)})"
            told.append(f"{side}: {passed} passed, {failed} failed, {left_out}")
            if failed or not passed:
                failures.append(side)
    print("\n" + "\n".join(told))
    if failures:
        sys.exit(f"failed: {'; '.join(failures)}")


if __name__ == "__main__":
    main(sys.argv[1:])
