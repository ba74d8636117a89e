"""What the scripts that drive programs share: built programs, folders, commits, logs of runs."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def programs(arguments, profile, packages):
    """The folder of the built programs: the one that the command line names, or that of a build."""
    if len(arguments) > 1:
        sys.exit(f"there is no argument `{arguments[1]}`")
    if arguments:
        return pathlib.Path(arguments[0]).resolve(strict=True)
    named = [word for package in packages for word in ("--package", package)]
    subprocess.run(["cargo", "build", "--profile", profile, *named], cwd=ROOT, check=True)
    return TARGET / profile


def empty_folder(name):
    """A folder below the target folder that holds nothing yet."""
    folder = TARGET / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def output(*command, **options):
    """The standard output of a command, which has to succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, **options)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{said}")
    return done.stdout


def lines(log, kind):
    """The lines of one kind in a log: `spec/scenario.md`."""
    mark = f'"kind":"{kind}"'
    return (json.loads(line) for line in log.split("\n") if mark in line)


def run(*command, **options):
    """Runs a command that says itself what it does, and has to succeed."""
    words = [str(word) for word in command]
    print(f"$ {' '.join(words)}", file=sys.stderr, flush=True)
    options.setdefault("cwd", ROOT)
    if subprocess.run(words, **options).returncode:
        raise RuntimeError(f"{' '.join(words)} has failed")


def git(*words, **options):
    return output("git", *words, **{"cwd": ROOT, **options}).decode().strip()


@contextlib.contextmanager
def worktree(commit, folder):
    """The files of a commit, in a folder that is made anew and goes at the end."""

    def remove():
        if folder.exists():
            git("worktree", "remove", "--force", folder)

    remove()
    git("worktree", "add", "--force", "--detach", folder, commit)
    try:
        yield folder
    finally:
        remove()
