//! A scenario in real time: processes in network namespaces are machines among those of the
//! simulator, and what they send crosses the same media.

mod card;
mod keys;
mod orders;
mod page;
mod stage;

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::engine::{LatencyHistogram, OutsideArrival, OutsideDeparture, SimPresence};
use crate::{SimError, SimOutcome, SimRun, SimSpan, SimTime};
use keys::LiveKeyFolders;
use orders::{LiveOrder, LiveOrderInbox, on_signal, refusal};
pub(crate) use orders::{give, words};
pub(crate) use stage::LiveSettings;
use stage::{LiveCard, LiveProcesses};

/// Due events are done in pieces of so much virtual time. A run that is late therefore still reads
/// the frames of processes.
const PIECE: SimSpan = SimSpan::from_ms(5);
/// Frames that are read of one card at once.
const FRAMES_AT_ONCE: usize = 32;
/// The longest frame of any medium, with its header.
const FRAME_BYTES: usize = 9216;
/// How often it is told how late the run is.
const TELLS: Duration = Duration::from_secs(10);
/// How often it is looked whether programs still run.
const LOOKS: Duration = Duration::from_secs(1);

/// Runs to the end of the scenario, or until somebody ends it.
///
/// # Errors
///
/// [`SimError::Live`], [`SimError::Keys`], and those of [`SimRun::finish`].
pub(crate) fn run(mut run: SimRun<'_>, setting: &LiveSettings<'_>) -> Result<SimOutcome, SimError> {
    setting.page.map_or(Ok(()), page::check)?;
    let keys = LiveKeyFolders::open(run.scenario(), setting.file)?;
    if let Some(keys) = &keys {
        let crew = keys.crew()?.with_documents(run.scenario())?;
        run.enlist(crew);
        eprintln!("sealane-sim: keys: {}", keys.folder.display());
    }
    let stage = LiveProcesses::open(run.scenario(), setting, keys.as_ref())?;
    let (counter, door) = LiveOrderInbox::open(setting.file)?;
    let (name, socket) = (&run.scenario().name, orders::socket(setting.file));
    eprintln!("sealane-sim: {name} runs; orders: {}", socket.display());
    if let Some(address) = setting.page {
        eprintln!("sealane-sim: page: {}", page::serve(address, name, door.clone())?);
    }
    let signals = on_signal(door);
    let mut live = LiveRun {
        run,
        stage,
        counter,
        signals,
        started: Instant::now(),
        late: LiveLateness::default(),
        departures: vec![],
        is_over: false,
    };
    live.go()?;
    let LiveRun { mut run, stage, late, .. } = live;
    drop(stage);
    eprintln!("sealane-sim: {}", late.words());
    run.cut_short();
    run.finish()
}

/// A run in real time.
struct LiveRun<'w> {
    run: SimRun<'w>,
    stage: LiveProcesses,
    counter: LiveOrderInbox,
    signals: Receiver<()>,
    started: Instant,
    late: LiveLateness,
    departures: Vec<OutsideDeparture>,
    is_over: bool,
}

/// How much later than due things were done.
#[derive(Default)]
struct LiveLateness {
    all: LatencyHistogram,
    now: SimSpan,
}

impl LiveLateness {
    fn put(&mut self, late: SimSpan) {
        self.all.put(late);
        self.now = late;
    }

    fn words(&self) -> String {
        let ms = |span: SimSpan| span.as_s() * 1e3;
        format!(
            "late by {:.2} ms half of the time, {:.2} ms 99 % of it, {:.2} ms at most, \
             {:.2} ms now",
            ms(self.all.within(0.5)),
            ms(self.all.within(0.99)),
            ms(self.all.most()),
            ms(self.now)
        )
    }
}

impl LiveRun<'_> {
    fn go(&mut self) -> Result<(), SimError> {
        let end = SimTime(0) + self.run.scenario().duration;
        let (mut tells, mut looks) = (self.started + TELLS, self.started + LOOKS);
        while !self.is_over && self.run.now() < end {
            self.catch_up(end)?;
            self.stage.follow(self.run.take_turns())?;
            self.run.take_departures(&mut self.departures);
            for departure in self.departures.drain(..) {
                self.stage.deliver(&departure);
            }
            self.obey()?;
            self.is_over |= self.signals.try_recv().is_ok();
            let now = Instant::now();
            if now >= looks {
                self.stage.tell_ended();
                looks = now + LOOKS;
            }
            if now >= tells {
                let seconds = self.started.elapsed().as_secs();
                eprintln!("sealane-sim: {seconds} s: {}", self.late.words());
                tells = now + TELLS;
            }
            self.listen(end)?;
        }
        Ok(())
    }

    /// The time that has passed.
    fn clock(&self) -> SimTime {
        SimTime(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Does what is due, or a piece of it.
    fn catch_up(&mut self, end: SimTime) -> Result<(), SimError> {
        let now = self.clock().min(end);
        match self.run.next_due().filter(|due| *due <= now) {
            Some(due) => {
                self.late.put(now - due);
                self.run.advance(now.min(due + PIECE))
            }
            None => self.run.advance(now),
        }
    }

    /// Does what somebody wants done.
    fn obey(&mut self) -> Result<(), SimError> {
        while let Some(asked) = self.counter.next() {
            let answer = self.answer(&asked)?;
            asked.answer(answer);
        }
        Ok(())
    }

    /// A refusal goes to whoever asked; a fault ends the run.
    fn answer(&mut self, asked: &LiveOrder) -> Result<Value, SimError> {
        let done = json!({ "v": 1, "at": self.run.now().0 });
        let fields: Option<Value> = serde_json::from_str(&asked.order).ok();
        match fields.as_ref().and_then(|fields| fields.get("do")?.as_str()) {
            Some("status") => Ok(self.status()),
            Some("stop") => {
                self.is_over = true;
                Ok(done)
            }
            _ => match self.run.scenario().order(&asked.order) {
                Err(error) => Ok(refusal(&error)),
                Ok(act) => self.run.act(act).map(|()| done),
            },
        }
    }

    fn status(&self) -> Value {
        let machines = self.run.standings().map(|one| {
            json!({
                "name": one.name,
                "x": one.place.x,
                "y": one.place.y,
                "state": match one.state {
                    SimPresence::Away => "away",
                    SimPresence::Awake => "awake",
                    SimPresence::Asleep => "asleep",
                },
                "taken": one.is_taken,
                "sent": one.sent.0,
                "heard": one.heard.0,
            })
        });
        let LiveLateness { all, now } = &self.late;
        json!({
            "v": 1,
            "at": self.run.now().0,
            "late": {
                "half": all.within(0.5).0,
                "most": all.within(0.99).0,
                "all": all.most().0,
                "now": now.0,
            },
            "machines": machines.collect::<Vec<_>>(),
        })
    }

    /// Waits until something is due or comes, and takes what comes.
    fn listen(&mut self, end: SimTime) -> Result<(), SimError> {
        let now = self.clock();
        let until = self.run.next_due().unwrap_or(end).min(end);
        let micros = (until - now).0.min(LOOKS.as_micros() as u64);
        let nanos = (micros % 1_000_000) as i64 * 1000;
        let patience = Timespec { tv_sec: (micros / 1_000_000) as i64, tv_nsec: nanos };
        let cards: Vec<&LiveCard> = self.stage.cards().collect();
        let mut waits: Vec<_> =
            cards.iter().map(|card| PollFd::new(&card.device, PollFlags::IN)).collect();
        waits.push(PollFd::new(&self.counter.bell, PollFlags::IN));
        match poll(&mut waits, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(SimError::Live(format!("waiting: {error}"))),
        }
        let ready: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
        if ready.last().is_some_and(|rings| *rings) {
            self.counter.hush();
        }
        // Frames that arrive now come after the events that were due until now.
        let now = self.started.elapsed().as_micros() as u64;
        if self.run.next_due().is_none_or(|due| due > SimTime(now)) {
            self.run.advance(SimTime(now).min(end))?;
        }
        let mut frame = [0; FRAME_BYTES];
        for (card, _) in cards.into_iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
            for _ in 0..FRAMES_AT_ONCE {
                let Ok(bytes) = card.device.recv(&mut frame) else { break };
                let Some(inside) = frame.get(..bytes).and_then(|frame| card.place.read(frame))
                else {
                    continue;
                };
                let (node, port) = (card.node, card.port);
                let (to, cover, unit) = (inside.to, inside.cover, inside.unit);
                self.run.enter(&OutsideArrival { node, port, to, cover, unit })?;
            }
        }
        Ok(())
    }
}
