//! Waiting for a condition: one deadline for all tests.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// No test waits longer for a thing. A machine that is busy with other work may take most of it,
/// so that nothing is measured by it.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The first pause between two looks; each further one is half as long again.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause. Many looks start a process, which on two cores slows down what is awaited.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The pauses of one wait, and its end.
struct TestWait {
    began: Instant,
    pause: Duration,
}

impl TestWait {
    fn begin() -> TestWait {
        TestWait { began: Instant::now(), pause: FIRST_PAUSE }
    }

    /// The next pause, or nothing once the deadline has passed.
    fn next(&mut self) -> Option<Duration> {
        let pause = self.pause;
        self.pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        (self.began.elapsed() < PATIENCE).then_some(pause)
    }
}

/// Waits until the condition holds, and gives how long that took.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let mut wait = TestWait::begin();
    while !is_so() {
        let Some(pause) = wait.next() else { panic!("not so: {what}") };
        std::thread::sleep(pause);
    }
    wait.began.elapsed()
}

/// Asks until the answer is as it should be, and gives that answer. A failure shows the last one.
#[track_caller]
pub fn until_told<T: Debug>(mut ask: impl FnMut() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let mut wait = TestWait::begin();
    loop {
        let told = ask();
        if is_so(&told) {
            return told;
        }
        let Some(pause) = wait.next() else { panic!("not so: {told:?}") };
        std::thread::sleep(pause);
    }
}

/// Waits in an async test until the condition holds.
#[cfg(feature = "async")]
pub async fn until_async(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
    let mut wait = TestWait::begin();
    while !is_so().await {
        let Some(pause) = wait.next() else { panic!("not so: {what}") };
        tokio::time::sleep(pause).await;
    }
    wait.began.elapsed()
}

/// Asks in an async test until the answer is as it should be, and gives that answer.
#[cfg(feature = "async")]
pub async fn until_told_async<T: Debug>(
    mut ask: impl AsyncFnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let mut wait = TestWait::begin();
    loop {
        let told = ask().await;
        if is_so(&told) {
            return told;
        }
        let Some(pause) = wait.next() else { panic!("not so: {told:?}") };
        tokio::time::sleep(pause).await;
    }
}
