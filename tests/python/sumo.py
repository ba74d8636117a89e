"""SUMO drives the vehicles of a run, and each place in the log is compared with SUMO's.

    sumo.py [FOLDER]   FOLDER has `sealane-sim`, built already

Streets and trips are made by SUMO's own tools. `cargo xtask prove sumo` installs those, and keeps
what this prints.
"""

import math
import os
import re
import sys

import lab

# Where Debian keeps SUMO's tools and lists.
HOME = "/usr/share/sumo"
# How long vehicles set out, and how long all is watched, in seconds.
SETS_OUT_S, WATCHED_S = 120, 180
# The seed of streets, trips and drivers.
SEED = 7
# The simulator moves machines ten times a second: a vehicle at 14 m/s is 1.4 m on by then.
APART_M = 2.0
# The number of the first machine that is a vehicle: the gateways stand before.
FIRST = 9


def drive(folder):
    """Has SUMO make streets, trips and a trace."""
    for words in [
        f"netgenerate --grid --grid.number 6 --grid.length 200 --seed {SEED} -o net.xml",
        f"python3 {HOME}/tools/randomTrips.py -n net.xml -o trips.xml -e {SETS_OUT_S} -p 1.5"
        f" --seed {SEED}",
        f"sumo -n net.xml -r trips.xml -e {WATCHED_S} --no-step-log --seed {SEED}"
        " --fcd-output drive.xml --xml-validation never",
    ]:
        print(f"$ {words}", flush=True)
        lab.output(*words.split(), cwd=folder, env={**os.environ, "SUMO_HOME": HOME})
    return (folder / "drive.xml").read_text()


def scenario(vehicles):
    """As many vehicles as the trace has, and nine gateways at crossings."""
    return f"""version = 1
name = "sumo"
duration_s = {WATCHED_S}
[[medium]]
name = "road"
profile = "11p"
[[motion]]
name = "drive"
kind = "trace"
file = "drive.xml"
[[node]]
name = "gate"
count = {FIRST}
kind = "mesh"
role = "gateway"
media = ["road"]
at = [200, 200]
columns = 3
spacing_m = 300
[[node]]
name = "car"
count = {vehicles}
kind = "mesh"
media = ["road"]
motion = "drive"
[[flow]]
from = "car"
to = "gate"
every_ms = 5000
bytes = 200
from_s = 10
"""


def drives(trace):
    """Where each vehicle was at each second, in the order in which vehicles come."""
    second, found = 0, {}
    for line in trace.splitlines():
        keys = dict(re.findall(r' (\w+)="([^"]*)"', line))
        if "<timestep " in line:
            second = int(float(keys["time"]))
        elif "<vehicle " in line:
            found.setdefault(keys["id"], {})[second] = float(keys["x"]), float(keys["y"])
    return list(found.values())


def compare(log, trace):
    """Each vehicle has joined, and was where SUMO had it."""
    joined = sum(1 for line in lab.lines(log, "join") if line["node"] >= FIRST)
    left = sum(1 for _ in lab.lines(log, "leave"))
    places, apart = 0, 0.0
    for line in lab.lines(log, "move"):
        seat = line["node"] - FIRST
        spot = trace[seat].get(line["at"] // 1_000_000) if 0 <= seat < len(trace) else None
        if spot:
            places += 1
            apart = max(apart, math.dist(spot, (line["x"], line["y"])))
    print(f"vehicles: {len(trace)} in the trace, {joined} joined, {left} left before the end")
    print(f"places:   {places} compared with SUMO's, at most {apart:.2f} m apart\n", flush=True)
    if joined != len(trace) or places < len(trace) * 10 or apart > APART_M:
        sys.exit(f"vehicles are not where SUMO has them: {APART_M} m are demanded")


def main(arguments):
    programs = lab.programs(arguments, "ship", ["sealane-sim"])
    folder = lab.empty_folder("sumo")
    print(lab.output("sumo", "--version").decode().splitlines()[0], flush=True)
    trace = drives(drive(folder))
    (folder / "sumo.toml").write_text(scenario(len(trace)))
    sim, kept = programs / "sealane-sim", folder / "sumo.jsonl"
    page = ["--html", folder / "sumo.html"]
    kept.write_bytes(lab.output(sim, "run", "--json", folder / "sumo.toml", *page))
    compare(kept.read_text(), trace)
    print(lab.output(sim, "replay", kept).decode(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
