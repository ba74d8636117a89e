//! `sealane demo`: the main job on real input, with a crash in the middle.
//!
//! A hub runs as a process of its own over a fresh folder. This machine's telemetry goes in, a
//! stream for each kind, and three consumers read it back, each in another codec. Half-way the hub
//! is killed without warning and started again on the same folder. Then lines of the README run
//! over the same hub, and a member in the field writes to it over machines that find each other.
//! Each part compares what was sent with what came, and searches what it should hide.

mod field;
mod relayed;
mod report;
mod script;
mod show;
mod streams;
mod telemetry;

use sealane::Client;

use crate::args::DemoArgs;
use crate::signals::ProcessSignals;
use crate::{CliFailure, Terminal};
use report::{DemoClaim, DemoReport};
use script::{DemoProcess, DemoScript, holding};
use show::{DemoOutput, count, json};
use telemetry::{DemoLedger, DemoMachine};

/// Messages that are sealed for the hub.
const SEALED_MESSAGES: usize = 1000;

/// Runs the demo, tells what happens, and ends with what was claimed and measured.
///
/// # Errors
/// [`CliFailure::Demo`] where it cannot run, [`CliFailure::Lost`] where something did not come
/// back.
pub async fn run(args: &DemoArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let machine = DemoMachine::find()?;
    let mut signals = ProcessSignals::new().map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("sealane-demo-").tempdir().map_err(failed)?;
    let mut script = DemoScript::new(folder.path().to_owned())?;
    let hub = DemoProcess::start_hub(&mut script, "127.0.0.1:0").await?;
    let (words, report) = (DemoCanaries::new()?, DemoReport::default());
    let stage = DemoStage { machine, script, words, show: DemoOutput::new(terminal), report };
    // The processes and the folder go with it, also when it is told to stop.
    let report = tokio::select! {
        report = stage.play(args, hub) => report?,
        () = signals.end() => {
            return Err(CliFailure::Demo("it was told to stop; it has left nothing behind".into()));
        }
    };
    report.show(terminal)?;
    if report.is_readable() {
        return Err(CliFailure::Demo("what was sealed could be read where it is kept".into()));
    }
    match report.lost {
        0 => Ok(()),
        lost => {
            eprintln!("sealane: the node's data stay in {}", folder.keep().display());
            Err(CliFailure::Lost(lost))
        }
    }
}

fn failed(error: impl std::fmt::Display) -> CliFailure {
    CliFailure::Demo(error.to_string())
}

/// Words that are looked for in what the processes have written.
struct DemoCanaries {
    /// Published as it is.
    open: String,
    /// Published sealed.
    hidden: String,
}

impl DemoCanaries {
    /// Two words that are nowhere by chance.
    fn new() -> Result<Self, CliFailure> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(failed)?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { open: format!("open-{digits}"), hidden: format!("sealed-{digits}") })
    }
}

/// The state that all parts of the demo use.
struct DemoStage<'a> {
    machine: DemoMachine,
    script: DemoScript,
    words: DemoCanaries,
    show: DemoOutput<'a>,
    report: DemoReport,
}

impl DemoStage<'_> {
    async fn play(mut self, args: &DemoArgs, hub: DemoProcess) -> Result<DemoReport, CliFailure> {
        let mut hub = self.stream(args, hub).await?;
        let sealed_us = self.seal().await?;
        self.show.part("The same telemetry, over a relay that holds no key")?;
        let (keys, word) = (self.script.path("relayed"), &self.words.hidden);
        let machine = &self.machine;
        let relayed = tokio::task::block_in_place(|| relayed::run(machine, &keys, word))?;
        self.show.line(relayed.told())?;
        self.show.part("From the field to the cloud, over machines that find each other")?;
        let (folder, word) = (self.script.path("field"), &self.words.hidden);
        let field = field::run(&self.script, &self.machine, &folder, word).await?;
        self.show.line(field.told())?;
        hub.end();
        self.hub_hides(sealed_us)?;
        relayed.add_to(&mut self.report);
        field.add_to(&mut self.report);
        self.keep().await?;
        Ok(self.report)
    }

    /// Seals for a group of two machines, as the README does; gives microseconds of a message.
    async fn seal(&mut self) -> Result<f64, CliFailure> {
        self.show.part("The same telemetry, sealed for a group of two machines")?;
        let note = DemoMachine::note(&self.words.open);
        Client::connect(&self.script.hub)?.publish("demo/open", &note).await?;
        for (who, words, file) in [
            ("gateway", "key new gateway", None),
            ("gateway", "group new demo", None),
            ("dashboard", "key new dashboard", None),
            ("dashboard", "key card", Some("dashboard.card")),
            ("gateway", "group invite demo dashboard.card", Some("dashboard.invite")),
            ("dashboard", "group join dashboard.invite", None),
        ] {
            let said = self.script.run(who, words, &[]).await?;
            if let Some(file) = file {
                std::fs::write(self.script.path(file), said).map_err(failed)?;
            }
        }
        let (mut sent, mut lines) = (DemoLedger::default(), Vec::new());
        for number in 0..SEALED_MESSAGES {
            let envelope = self.machine.sample_with(number, &self.words.hidden)?;
            lines.extend(json(&envelope).into_bytes());
            lines.push(b'\n');
            sent.add(&envelope);
        }
        let began = std::time::Instant::now();
        self.line("gateway", "pub demo/sealed - --group demo --type vitals", &lines).await?;
        let words = "sub demo/sealed --from first --until-end --group demo --raw";
        let opened = self.line("dashboard", words, &[]).await?;
        let us = began.elapsed().as_secs_f64() * 1e6 / SEALED_MESSAGES as f64;
        self.report.lost += sent.missing(&DemoLedger::of_lines(&opened));
        let kept = self.line("hub", "sub demo/sealed --from first -n 1", &[]).await?;
        self.show.line(format_args!("the hub keeps   {}", kept.trim()))?;
        let first = opened.lines().next().unwrap_or_default();
        self.show.line(format_args!("a member reads  {first}"))?;
        Ok(us)
    }

    /// Shows a line of the README, and runs it.
    async fn line(&mut self, who: &str, words: &str, input: &[u8]) -> Result<String, CliFailure> {
        self.show.line(format_args!("{who}$ sealane {words}"))?;
        let said = self.script.run(who, words, input).await?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// Searches the hub's files, which a hub that runs still writes.
    fn hub_hides(&mut self, sealed_us: f64) -> Result<(), CliFailure> {
        let data = self.script.path("data");
        let (hidden, open) =
            (holding(&data, &self.words.hidden)?, holding(&data, &self.words.open)?);
        let messages = SEALED_MESSAGES as u64;
        let figures = [("sealed", messages), ("sealedFound", hidden), ("openFound", open)];
        self.report.figures.extend(figures.map(|(name, value)| (name, value.into())));
        self.report.searched(hidden, open);
        self.report.claims.push(DemoClaim {
            claim: "The hub cannot read what members seal.",
            measured: format!(
                "{} messages sealed, stored, read and opened, {sealed_us:.0} us each. A word that \
                 was sealed stands in {hidden} of the node's files, one that was published in the \
                 open in {open}.",
                count(messages)
            ),
        });
        Ok(())
    }

    /// The hub's data into an encrypted vault and back, as the README does.
    async fn keep(&mut self) -> Result<(), CliFailure> {
        self.show.part("The node's data, into an encrypted vault and back")?;
        let began = std::time::Instant::now();
        self.line("hub", "vault init --no-recovery", &[]).await?;
        let put = self.line("hub", "--json vault put data", &[]).await?;
        let drill = self.line("hub", "--json vault drill --all", &[]).await?;
        let number = |said: &str, name: &str| {
            let value = sealane_codec::decode(sealane::Codec::Json, said.trim().as_bytes()).ok();
            value.and_then(|value| value.field(name)?.as_u64()).unwrap_or_default()
        };
        let files = number(&put, "files");
        // A file that the vault did not take, or did not give back, is lost.
        let proven = number(&drill, "files").saturating_sub(number(&drill, "failed"));
        let found = holding(&self.script.path("vault"), &self.words.open)?;
        self.report.lost += files.saturating_sub(proven);
        self.report.shown += found;
        self.report.figures.extend([("vaultFiles", proven.into()), ("vaultFound", found.into())]);
        self.report.claims.push(DemoClaim {
            claim: "The vault gives back what it took, and its store cannot read it.",
            measured: format!(
                "{proven} of {files} files came back as they were, in {:.1} s. The word that was \
                 published in the open stands in {found} of its objects.",
                began.elapsed().as_secs_f64()
            ),
        });
        Ok(())
    }
}
