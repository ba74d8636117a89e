//! `cargo xtask sumo`: SUMO drives the vehicles of a run. Its streets and trips are made by its own
//! tools, and each place that the simulator tells of is compared with SUMO's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::babel::log::{number, of_kind};
use crate::process::{self, SHIP, XtaskResult};

/// Where Debian keeps SUMO's tools and lists.
const HOME: &str = "/usr/share/sumo";
/// How long vehicles set out, and how long all is watched, in seconds.
const SETS_OUT_S: &str = "120";
const WATCHED_S: &str = "180";
/// The seed of streets, trips and drivers.
const SEED: &str = "7";
/// The simulator moves machines ten times a second: a vehicle at 14 m/s is 1.4 m on by then.
const APART_M: f64 = 2.0;

/// Where a vehicle was at each second.
type SumoDrive = BTreeMap<u64, SumoSpot>;

#[derive(Debug, Clone, Copy, PartialEq)]
struct SumoSpot {
    x: f64,
    y: f64,
}

/// `cargo xtask sumo [FOLDER]`: FOLDER has the simulator, built already.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let programs = match arguments {
        [] => {
            let mut build = process::cargo();
            process::run(build.args(["build", "--profile", SHIP, "--package", "sealane-sim"]))?;
            process::target().join(SHIP)
        }
        [folder] => std::fs::canonicalize(folder).map_err(|error| format!("{folder}: {error}"))?,
        [_, other, ..] => return Err(format!("sumo has no argument `{other}`")),
    };
    crate::needs::sumo()?;
    let folder = process::target().join("sumo");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let version = process::output(process::program("sumo").arg("--version"))?;
    println!("{}", version.lines().next().unwrap_or_default());
    drive(&folder)?;
    let trace = std::fs::read_to_string(folder.join("drive.xml")).map_err(failed)?;
    let drives = drives(&trace);
    let scenario = folder.join("sumo.toml");
    std::fs::write(&scenario, text(drives.len())).map_err(failed)?;
    let sim = programs.join("sealane-sim");
    let mut drawn = process::program(&sim);
    drawn.args(["run", "--json"]).arg(&scenario).arg("--html").arg(folder.join("sumo.html"));
    let log = process::output(&mut drawn)?;
    let kept = folder.join("sumo.jsonl");
    std::fs::write(&kept, &log).map_err(failed)?;
    compare(&log, &drives)?;
    print!("{}", process::output(process::program(&sim).arg("replay").arg(&kept))?);
    Ok(())
}

/// Has SUMO make streets, trips and a trace.
fn drive(folder: &Path) -> XtaskResult {
    let trips = format!("{HOME}/tools/randomTrips.py");
    for words in [
        &["netgenerate", "--grid", "--grid.number", "6", "--grid.length", "200"][..],
        &["python3", &trips, "-n", "net.xml", "-o", "trips.xml", "-e", SETS_OUT_S, "-p", "1.5"],
        &["sumo", "-n", "net.xml", "-r", "trips.xml", "-e", WATCHED_S, "--no-step-log"],
    ] {
        let Some((program, arguments)) = words.split_first() else { continue };
        let mut command = Command::new(program);
        command.args(arguments).args(["--seed", SEED]);
        match *program {
            "netgenerate" => command.args(["-o", "net.xml"]),
            "sumo" => command.args(["--fcd-output", "drive.xml", "--xml-validation", "never"]),
            _ => &mut command,
        };
        println!("$ {}", process::shown(&command));
        process::output(command.env("SUMO_HOME", HOME).current_dir(folder))?;
    }
    Ok(())
}

/// As many vehicles as the trace has, and nine gateways at crossings.
fn text(vehicles: usize) -> String {
    format!(
        "version = 1\nname = \"sumo\"\nduration_s = {WATCHED_S}\n\
         [[medium]]\nname = \"road\"\nprofile = \"11p\"\n\
         [[motion]]\nname = \"drive\"\nkind = \"trace\"\nfile = \"drive.xml\"\n\
         [[node]]\nname = \"gate\"\ncount = 9\nkind = \"mesh\"\nrole = \"gateway\"\n\
         media = [\"road\"]\nat = [200, 200]\ncolumns = 3\nspacing_m = 300\n\
         [[node]]\nname = \"car\"\ncount = {vehicles}\nkind = \"mesh\"\nmedia = [\"road\"]\n\
         motion = \"drive\"\n\
         [[flow]]\nfrom = \"car\"\nto = \"gate\"\nevery_ms = 5000\nbytes = 200\nfrom_s = 10\n"
    )
}

/// The number of the first machine that is a vehicle: the gateways stand before.
const FIRST: usize = 9;

/// The drives of a trace, in the order in which vehicles come.
fn drives(trace: &str) -> Vec<SumoDrive> {
    let (mut seats, mut drives) = (BTreeMap::new(), vec![]);
    let mut second = 0;
    for line in trace.lines().map(str::trim) {
        if line.starts_with("<timestep ") {
            second =
                attribute(line, "time").and_then(|s| s.parse::<f64>().ok()).unwrap_or(0.0) as u64;
        }
        let Some(id) = attribute(line, "id").filter(|_| line.starts_with("<vehicle ")) else {
            continue;
        };
        let seat = *seats.entry(id.to_owned()).or_insert_with(|| {
            drives.push(SumoDrive::new());
            drives.len() - 1
        });
        let coordinate = |key| attribute(line, key).and_then(|m| m.parse().ok());
        if let (Some(x), Some(y), Some(drive)) =
            (coordinate("x"), coordinate("y"), drives.get_mut(seat))
        {
            drive.insert(second, SumoSpot { x, y });
        }
    }
    drives
}

fn attribute<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(&format!(" {key}=\""))?.1.split('"').next()
}

/// A number of a line of the log that may have a fraction.
fn metres(line: &str, key: &str) -> Option<f64> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    rest.split([',', '}']).next()?.parse().ok()
}

/// Each vehicle has joined, and was where SUMO had it.
fn compare(log: &str, drives: &[SumoDrive]) -> XtaskResult {
    let vehicle = |line: &str| number(line, "node").and_then(|n| (n as usize).checked_sub(FIRST));
    let joined = of_kind(log, "join").filter(|line| vehicle(line).is_some()).count();
    let left = of_kind(log, "leave").count();
    let (mut places, mut apart) = (0, 0.0_f64);
    for line in of_kind(log, "move") {
        let second = number(line, "at").map(|us| us / 1_000_000);
        let spot = vehicle(line).and_then(|seat| drives.get(seat)?.get(&second?));
        let (Some(spot), Some(x), Some(y)) = (spot, metres(line, "x"), metres(line, "y")) else {
            continue;
        };
        places += 1;
        apart = apart.max((spot.x - x).hypot(spot.y - y));
    }
    let all = drives.len();
    println!("vehicles: {all} in the trace, {joined} joined, {left} left before the end");
    println!("places:   {places} compared with SUMO's, at most {apart:.2} m apart\n");
    if joined != all || places < all * 10 || apart > APART_M {
        return Err(format!("vehicles are not where SUMO has them: {APART_M} m are demanded"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "<timestep time=\"0.00\">\n<vehicle id=\"b\" x=\"1.5\" y=\"2\"/>\n\
                         </timestep>\n<timestep time=\"1.00\">\n\
                         <vehicle id=\"a\" x=\"7\" y=\"8\"/>\n\
                         <vehicle id=\"b\" x=\"3\" y=\"2\"/>\n</timestep>\n";

    #[test]
    fn a_trace_is_read_by_who_comes_first() {
        let drives = drives(TRACE);
        assert_eq!(
            drives[0],
            SumoDrive::from([(0, SumoSpot { x: 1.5, y: 2.0 }), (1, SumoSpot { x: 3.0, y: 2.0 })])
        );
        assert_eq!(drives[1], SumoDrive::from([(1, SumoSpot { x: 7.0, y: 8.0 })]));
    }

    #[test]
    fn a_vehicle_elsewhere_is_noticed() {
        let drives: Vec<SumoDrive> =
            vec![(0..20).map(|second| (second, SumoSpot { x: second as f64, y: 0.0 })).collect()];
        let log = |off: f64| {
            let join = "{\"at\":0,\"kind\":\"join\",\"node\":9,\"x\":0,\"y\":0}\n".to_owned();
            (0..20).fold(join, |log, second| {
                let (at, x) = (second * 1_000_000, second as f64 + off);
                log + &format!("{{\"at\":{at},\"kind\":\"move\",\"node\":9,\"x\":{x},\"y\":0}}\n")
            })
        };
        assert_eq!(compare(&log(1.0), &drives), Ok(()));
        assert!(compare(&log(2.5), &drives).is_err());
        assert!(compare("", &drives).is_err());
    }
}
