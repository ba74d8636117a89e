//! A stream whose level changes while it is written: what counts is the level that the reply to a
//! message names.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use super::http::Http;
use super::json;
use super::ledger::{Ledger, Place, Reading};
use super::load::Pace;
use super::random::Random;
use super::survival::Survival;
use super::writer::Writer;

const LEVELS: [&str; 3] = ["memory", "os", "disk"];

#[derive(Default)]
pub(crate) struct Levels {
    /// The level at which each message was acknowledged.
    reached: Mutex<HashMap<Place, String>>,
}

impl Clone for Levels {
    fn clone(&self) -> Self {
        Self { reached: Mutex::new(self.reached.lock().unwrap().clone()) }
    }
}

impl Levels {
    pub(crate) const TOPIC: &str = "levels";

    pub(crate) fn write(&self, mut writer: Writer<'_>, mut random: Random, pace: &Pace) {
        while pace.writes() {
            let count = random.within(1..4);
            let Ok(reply) = writer.enqueue(Self::TOPIC, count) else { return };
            assert_eq!(reply.status, 200, "{}", reply.body);
            let number = |name| json::number(&reply.body, name);
            let (generation, first) = (number("generation"), number("offset"));
            let level = json::text(&reply.body, "level");
            let places = (first..first + count).map(|offset| (generation, offset));
            let mut reached = self.reached.lock().unwrap();
            reached.extend(places.map(|place| (place, level.to_owned())));
            drop(reached);
            std::thread::sleep(Duration::from_millis(random.within(0..4)));
        }
    }

    pub(crate) fn change(mut http: Http, mut random: Random, pace: &Pace) {
        let path = format!("/v1/streams/{}", Self::TOPIC);
        while pace.writes() {
            let level = LEVELS[random.within(0..3) as usize];
            let Ok(reply) = http.call("PUT", &path, &format!(r#"{{"level":"{level}"}}"#)) else {
                return;
            };
            assert!(matches!(reply.status, 200 | 201), "{}: {}", reply.status, reply.body);
            std::thread::sleep(Duration::from_millis(random.within(1..40)));
        }
    }

    pub(crate) fn check(&self, reading: &Reading, ledger: &Ledger, survival: Survival) {
        let (acknowledged, mut reached) = (ledger.of(Self::TOPIC), self.reached.lock().unwrap());
        reached.retain(|place, level| {
            let is_there = reading.messages.get(place) == Some(&acknowledged[place]);
            let kept = survival.keeps(level);
            assert!(is_there || !kept, "levels: {place:?} was acknowledged at {level}, and gone");
            let (old, new) = (place.0, reading.generation);
            assert!(is_there || new > old, "levels: {place:?} is gone without a new generation");
            is_there
        });
    }

    /// How many messages of a level are known to be kept.
    pub(crate) fn kept(&self, level: &str) -> usize {
        self.reached.lock().unwrap().values().filter(|reached| *reached == level).count()
    }
}
