"""Pictures of the console, the pages, the maps and the command line, into `results/pictures`.

    pictures.py [FOLDER]   FOLDER has all three programs, built already; the live page needs root

`cargo xtask needs` installs what this takes.
"""

import json
import os
import shutil
import subprocess
import sys

import lab

SAMPLE = "crates/sealane-bench/samples/fleet.jsonl"
# The scenarios whose maps are shown, and for how many seconds each is run.
MAPS = {"mixed": 120, "city": 20}
# Columns of a usual terminal, and of a wide one.
WIDTHS, ROWS = (80, 200), 40
# Back to the upper left corner, and nothing left of what stood there: what is seen begins anew.
CLEAR = "\x1b[H\x1b[J"
# Nothing is left of the line.
ERASE = "\x1b[2K"
KEYS = ["sealane key new alice", "sealane group new fleet", "sealane group new drivers"]
SCREENS = {
    "sub": "sealane sub '**' --from first -n 24",
    "stream-ls": "sealane stream ls",
    "top": "sealane top --every 500ms --count 2",
    "group-ls": "sealane group ls",
    "doctor": "sealane doctor --data ~/data",
    "cost": "sealane-bench cost --quick fleet.jsonl",
    "demo": "sealane demo --for 4s",
}


def seen(shown, width):
    """The lines as they stand on a terminal of that width, which breaks the longer ones.

    What a progress bar has drawn over is not seen any more.
    """
    text = ""
    for line in shown.rsplit(CLEAR, 1)[-1].rstrip().split("\n"):
        line = line.rstrip("\r").rsplit("\r", 1)[-1].rsplit(ERASE, 1)[-1]
        parts = [line[at : at + width].rstrip() for at in range(0, len(line), width)]
        text += "".join(f"{part}\n" for part in parts or [""])
    return text if shown.strip() else ""


def node_script(name, *arguments):
    command = ["node", f"tests/js/{name}.mjs", *map(str, arguments)]
    subprocess.run(command, cwd=lab.ROOT, check=True)


def maps(programs, work, pictures):
    """Runs scenarios, and keeps what their maps look like."""
    pages = []
    for name, seconds in MAPS.items():
        pages.append(work / f"{name}.html")
        scenario = ["run", f"scenarios/{name}.toml", "--seconds", seconds]
        lab.output(programs / "sealane-sim", *scenario, "--html", pages[-1], cwd=lab.ROOT)
    node_script("maps", pictures, *pages)


def live(programs, work, pictures):
    """Works with the page of a live run, and keeps what it looks like."""
    scenario = shutil.copy(lab.ROOT / "scenarios/row.toml", work)
    command = [programs / "sealane-sim", "live", "--page", "127.0.0.1:0", "--prefix", "pictures"]
    command += ["--seconds", "120", scenario]
    sim = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=lab.ROOT)
    try:
        page = next((line.split("page: ")[1] for line in sim.stderr if "page: " in line), None)
        if not page:
            sys.exit("sealane-sim live does not start")
        node_script("live", page.strip(), 4, pictures)
    finally:
        sim.kill()
        sim.wait()


def screens(programs, home, address, pictures):
    """Types into a shell on a terminal of each width, and keeps what is seen then."""

    def typed(line, width):
        path = f"{programs}:{os.environ['PATH']}"
        settings = {"PATH": path, "HOME": str(home), "SEALANE_SERVER": address}
        settings |= {"NO_COLOR": "1", "TERM": "xterm"}
        shell = f"stty cols {width} rows {ROWS}; {line}"
        command = ["script", "-qec", shell, "/dev/null"]
        shown = lab.output(*command, env=settings, cwd=home, stdin=subprocess.DEVNULL)
        return shown.decode()

    for line in KEYS:
        typed(line, WIDTHS[0])
    for name, line in SCREENS.items():
        for width in WIDTHS:
            text = seen(typed(line, width), width).replace(str(home), "~")
            (pictures / f"{name}-{width}.txt").write_text(f"$ {line}\n{text}")
    print(f"{len(SCREENS) * len(WIDTHS)} screens are in {pictures}")


def main(arguments):
    packages = ["sealane-cli", "sealane-bench", "sealane-sim"]
    programs = lab.programs(arguments, "release", packages)
    # A node that has nothing but what the pictures are to show.
    work, pictures = lab.empty_folder("pictures"), lab.ROOT / "results/pictures"
    pictures.mkdir(exist_ok=True)
    cost, book = work / "cost.html", work / "book.html"
    bench = programs / "sealane-bench"
    lab.output(bench, "cost", "--quick", SAMPLE, "--html", cost, cwd=lab.ROOT)
    reports = ["report", "--quick", "triple-json", "gateway-codec", "--html"]
    lab.output(bench, *reports, book, cwd=lab.ROOT)
    up = ["up", "--json", "--listen", "127.0.0.1:0", "--data", work / "data"]
    node = subprocess.Popen([programs / "sealane", *up], stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(node.stdout.readline())["address"]
        node_script("pictures", address, cost, book, pictures)
        maps(programs, work, pictures)
        live(programs, work, pictures)
        shutil.copy(lab.ROOT / SAMPLE, work)
        screens(programs, work, address, pictures)
    finally:
        node.kill()
        node.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
