//! The routing programs in network namespaces: `babeld` of Debian, or Sealane's relays.

use std::path::{Path, PathBuf};

use super::{BabelTopology, keep};
use crate::process::{self, XtaskResult};

/// The prefix of the namespaces' names.
pub(super) const PREFIX: &str = "babel";

/// The routing program of each machine.
pub(super) enum BabelRouter<'a> {
    Babeld(&'a BabeldSettings),
    Sealane(&'a SealaneRouter),
}

/// How `babeld` is started.
pub(super) struct BabeldSettings {
    pub(super) name: &'static str,
    /// A line of its configuration, or nothing.
    line: &'static str,
}

pub(super) const SETTINGS: [BabeldSettings; 3] = [
    BabeldSettings { name: "babeld, as it comes", line: "" },
    BabeldSettings { name: "babeld, type wireless", line: "default type wireless" },
    BabeldSettings {
        name: "babeld, wireless, hello 1 s",
        line: "default type wireless hello-interval 1",
    },
];

/// Sealane's program, and key folders and files of machines.
pub(super) struct SealaneRouter {
    program: PathBuf,
    folder: PathBuf,
}

impl BabelRouter<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            BabelRouter::Babeld(settings) => settings.name,
            BabelRouter::Sealane(_) => "sealane relay, mesh up",
        }
    }

    /// The keys of a scenario's table of machines that say which program they run.
    pub(super) fn runs(&self) -> String {
        let shell = match self {
            BabelRouter::Babeld(BabeldSettings { line, .. }) => {
                let more = if line.is_empty() { String::new() } else { format!("-C '{line}' ") };
                format!(
                    "ip address add fd83::$SEALANE_SIM_NUMBER/128 dev lo; \
                     sysctl -qw net.ipv6.conf.all.forwarding=1; rm -f $SEALANE_SIM_NAME.state; \
                     exec babeld -I '' -S $SEALANE_SIM_NAME.state {more}road"
                )
            }
            BabelRouter::Sealane(SealaneRouter { program, .. }) => format!(
                "export SEALANE_KEYS=$PWD/$SEALANE_SIM_NAME; \
                 grep -q mesh.member $SEALANE_SIM_NAME.toml && verb='mesh up fleet' || verb=relay; \
                 exec {} $verb $SEALANE_SIM_NAME.toml",
                program.display()
            ),
        };
        format!("kind = \"process\"\ncommand = [\"sh\", \"-c\", \"\"\"{shell}\"\"\"]")
    }

    /// How many others a machine has a route to.
    pub(super) fn known(&self, name: &str) -> usize {
        match self {
            BabelRouter::Babeld(_) => {
                let mut ip = process::program("ip");
                ip.args(["-n", &format!("{PREFIX}-{name}"), "-6", "route", "show"]);
                let is_found =
                    |line: &&str| line.starts_with("fd83::") && line.contains("proto babel");
                process::output(&mut ip).unwrap_or_default().lines().filter(is_found).count()
            }
            BabelRouter::Sealane(sealane) => sealane.status(name).matches("\"ways\":[{").count(),
        }
    }

    /// The address of a machine, by its place in the list.
    pub(super) fn address(&self, last: usize) -> String {
        match self {
            BabelRouter::Babeld(_) => format!("fd83::{last}"),
            BabelRouter::Sealane(_) => "10.9.0.2".to_owned(),
        }
    }

    /// Which of two relays the first machine sends by to the last: the second or the third.
    pub(super) fn relay_in_use(&self, last: usize) -> Option<&'static str> {
        let is_in_use = |number: usize| match self {
            BabelRouter::Babeld(_) => {
                let mut route = process::program("ip");
                route.args(["-n", &format!("{PREFIX}-from"), "-6", "route", "get"]);
                route.arg(self.address(last));
                // The address of a card ends with the machine's number.
                let route = process::output(&mut route).unwrap_or_default();
                route.contains(&format!("4cff:fe00:{number} "))
            }
            BabelRouter::Sealane(sealane) => {
                let status = sealane.status("from");
                let routes = status.split_once("\"routes\":").map_or("", |(_, routes)| routes);
                let ways = routes.split("\"ways\":[").zip(routes.split("\"ways\":[").skip(1));
                let mut first = ways.filter(|(before, _)| {
                    before.rsplit_once("\"to\":").is_some_and(|(_, to)| {
                        to.split([',', '}']).next() == Some(&last.to_string())
                    })
                });
                first.next().is_some_and(|(_, ways)| {
                    let way = ways.split('}').next().unwrap_or_default();
                    super::log::number(way, "via") == Some(number as u64)
                })
            }
        };
        [(1, "via-1"), (2, "via-2")].into_iter().find(|(n, _)| is_in_use(*n)).map(|(_, name)| name)
    }
}

impl SealaneRouter {
    /// Keys for all machines of a topology, and a file for each: the first and the last are ends of
    /// a group of their own, the others relays that do not have its keys.
    pub(super) fn new(
        programs: &Path,
        folder: &Path,
        topology: &BabelTopology,
    ) -> XtaskResult<Self> {
        let program = programs.join("sealane");
        let sealane = Self { program, folder: folder.to_owned() };
        let names = topology.names();
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            return Err("no machines".to_owned());
        };
        for who in &names {
            let _ = std::fs::remove_dir_all(folder.join(who));
            sealane.run(who, &["key", "new", who])?;
            if who == first {
                sealane.run(who, &["group", "new", "roads"])?;
                sealane.run(who, &["group", "new", "fleet"])?;
            } else {
                sealane.join("roads", first, who)?;
            }
        }
        sealane.join("fleet", first, last)?;
        let orders = sealane.file("orders", first, &["group", "orders", "roads"])?;
        for who in names.iter().filter(|who| *who != first) {
            // The machine that joined last has them already.
            let _ = sealane.run(who, &["group", "apply", "roads", &orders]);
        }
        sealane.file("fleet.card", first, &["group", "relay-card", "fleet"])?;
        for who in &names {
            let is_end = who == first || who == last;
            keep(&folder.join(who).with_extension("toml"), text(who, who == first, is_end))?;
        }
        Ok(sealane)
    }

    /// The standard output of `sealane`, which need not be text.
    fn run(&self, who: &str, arguments: &[&str]) -> XtaskResult<Vec<u8>> {
        let mut command = process::program(&self.program);
        command.args(arguments).env("SEALANE_KEYS", self.folder.join(who));
        let output = command.output().map_err(|error| format!("sealane: {error}"))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn file(&self, name: &str, who: &str, arguments: &[&str]) -> XtaskResult<String> {
        let path = self.folder.join(name);
        keep(&path, self.run(who, arguments)?)?;
        Ok(path.display().to_string())
    }

    fn join(&self, group: &str, first: &str, who: &str) -> XtaskResult {
        let card = self.file("card", who, &["key", "card"])?;
        let invitation = self.file("invitation", first, &["group", "invite", group, &card])?;
        self.run(who, &["group", "join", &invitation]).map(drop)
    }

    /// The status that a machine reports of itself; nothing if it reports none.
    fn status(&self, name: &str) -> String {
        let mut status = process::program("ip");
        status.args(["netns", "exec", &format!("{PREFIX}-{name}")]).arg(&self.program);
        status.args(["--json", "mesh", "status"]);
        status.arg(self.folder.join(name).with_extension("toml"));
        process::output(&mut status).unwrap_or_default()
    }
}

/// The file of a machine.
fn text(who: &str, is_first: bool, is_end: bool) -> String {
    let link = "version = 1\nstatus = \"127.0.0.1:9191\"\n[[link]]\nname = \"road\"\n\
                ethernet = \"road\"\nmedium = \"11p\"\nmtu = 1502\n[routing]\ngroup = \"roads\"\n";
    if !is_end {
        let cards = "version = 1\ncards = [\"fleet.card\"]\n";
        return link.replacen("version = 1\n", cards, 1) + &format!("keys = \"{who}\"\n");
    }
    let host = if is_first { 1 } else { 2 };
    let members = [1, 2].map(|host| {
        let slot = host - 1;
        format!("[[mesh.member]]\nslot = {slot}\nprefixes = [\"10.9.0.{host}/32\"]\n")
    });
    format!("{link}[mesh]\naddresses = [\"10.9.0.{host}/24\"]\n{}", members.concat())
}
