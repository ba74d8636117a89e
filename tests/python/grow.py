"""What it takes to add a codec, an error, a field of the hub and a limit.

    grow.py [NAME ...]

Each is a patch in `tests/grow`. It is applied to a copy of the tree, where pages are made from it,
`tidy` looks at it, and all programs and tests have to compile. `tidy` compares the files of each
patch with the list in `docs/ARCHITECTURE.md`.
"""

import os
import sys

import lab

PATCHES = {path.stem: path for path in sorted((lab.ROOT / "tests/grow").glob("*.patch"))}


def take(patch, tree, target):
    """Applies a patch and checks what comes of it; how many files it touches."""
    lab.run("git", "apply", "--index", patch, cwd=tree)
    files = lab.git("diff", "--cached", "--name-only", cwd=tree).splitlines()
    # xtask works on the tree that cargo names to it.
    named = {**os.environ, "CARGO_MANIFEST_DIR": str(tree / "xtask")}
    for command in ("docs", "tidy"):
        lab.run(lab.TARGET / "debug/xtask", command, cwd=tree, env=named)
    # A folder of its own, as cargo tells apart what it builds by paths below the tree.
    build = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    lab.run("cargo", "check", "--workspace", "--all-targets", cwd=tree, env=build)
    return len(files)


def main(names):
    if not set(names) <= PATCHES.keys():
        sys.exit(f"there are {', '.join(PATCHES)}")
    lab.run("cargo", "build", "--quiet", "--package", "xtask")
    # A change that is not committed counts too. `git stash create` changes nothing.
    commit = lab.git("stash", "create") or "HEAD"
    failures = []
    with lab.worktree(commit, lab.TARGET / "grow/tree") as tree:
        for name in names or PATCHES:
            try:
                files = take(PATCHES[name], tree, lab.TARGET / "grow/build")
                print(f"{name}: {files} files, and it compiles", flush=True)
            except RuntimeError as failure:
                failures.append(name)
                print(f"{name}: {failure}", flush=True)
            lab.run("git", "reset", "--quiet", "--hard", cwd=tree)
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


if __name__ == "__main__":
    main(sys.argv[1:])
