//! How far a verb of `sealane vault` is: a bar on a terminal, lines of JSON for programs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sealane::Value;
use sealane_vault::PutProgress;

use crate::Terminal;
use crate::limits::{
    VAULT_BAR_DELAY_MS, VAULT_BAR_INTERVAL_MS, VAULT_BAR_STEP_MS, VAULT_LINE_INTERVAL_MS,
};
use crate::terminal::{map, record};
use crate::times::count;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressForm {
    /// Not at all.
    None,
    /// A bar that changes in its place, for a person.
    Bar,
    /// A line of JSON from time to time, for a program.
    Lines,
}

impl ProgressForm {
    pub(super) fn of(terminal: &Terminal) -> ProgressForm {
        match () {
            () if terminal.quiet() => ProgressForm::None,
            () if terminal.json() => ProgressForm::Lines,
            () if terminal.interactive() => ProgressForm::Bar,
            () => ProgressForm::None,
        }
    }
}

/// Does `work` while it is shown how far it is, how fast, and how long it will take. The `total`
/// in bytes may take a while to find out.
pub(super) fn watched<T>(
    form: ProgressForm,
    progress: &PutProgress,
    total: impl FnOnce() -> Option<u64> + Send,
    work: impl FnOnce() -> T,
) -> T {
    if form == ProgressForm::None {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| match form {
            ProgressForm::Lines => lines(&done, progress, total),
            _ => show_bar(&done, progress, total),
        });
        let _end = WorkEnd(&done);
        work()
    })
}

/// Tells the display on drop that the work is over. Work that panics is over, too: else the display
/// is waited for, and waits itself, for ever.
struct WorkEnd<'a>(&'a AtomicBool);

impl Drop for WorkEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn show_bar(done: &AtomicBool, progress: &PutProgress, total: impl FnOnce() -> Option<u64>) {
    // Work that ends before a person could read the bar shows no bar.
    if wait_for(done, Duration::from_millis(VAULT_BAR_DELAY_MS)) {
        return;
    }
    let bar = bar();
    bar.set_length(total().unwrap_or(0));
    while !wait_for(done, Duration::from_millis(VAULT_BAR_INTERVAL_MS)) {
        let bytes = progress.bytes.load(Ordering::Relaxed);
        // Files may have grown since they were measured.
        bar.set_length(bar.length().unwrap_or(0).max(bytes));
        bar.set_position(bytes);
        bar.set_message(count(progress.files.load(Ordering::Relaxed), "files"));
    }
    bar.finish_and_clear();
}

fn lines(done: &AtomicBool, progress: &PutProgress, total: impl FnOnce() -> Option<u64>) {
    if wait_for(done, Duration::from_millis(VAULT_LINE_INTERVAL_MS)) {
        return;
    }
    let total = total();
    loop {
        // To standard error: what was done is data, and how far it is is none. If nobody reads it,
        // the work goes on.
        let _ = std::io::stderr().lock().write_all(line(progress, total).as_bytes());
        if wait_for(done, Duration::from_millis(VAULT_LINE_INTERVAL_MS)) {
            return;
        }
    }
}

fn line(progress: &PutProgress, total: Option<u64>) -> String {
    let bytes = progress.bytes.load(Ordering::Relaxed);
    record(vec![(
        "progress",
        map(vec![
            ("files", Value::from(progress.files.load(Ordering::Relaxed))),
            ("bytes", Value::from(bytes)),
            // Files may have grown since they were measured.
            ("totalBytes", total.map_or(Value::Null, |total| Value::from(total.max(bytes)))),
        ]),
    )])
}

/// Waits until the work is done or the time is over, and says whether it is done.
fn wait_for(done: &AtomicBool, time: Duration) -> bool {
    let begun = Instant::now();
    while !done.load(Ordering::Relaxed) && begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(VAULT_BAR_STEP_MS));
    }
    done.load(Ordering::Relaxed)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    let shape = "{bytes} of {total_bytes}  {bytes_per_sec}  {wide_bar}  {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(shape).unwrap_or(ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_line_of_progress_says_how_much_of_how_much() {
        let progress = PutProgress::default();
        progress.files.store(3, Ordering::Relaxed);
        progress.bytes.store(200, Ordering::Relaxed);
        let told = |total| line(&progress, total);
        let before = "{\"v\":1,\"progress\":{\"files\":3,\"bytes\":200,\"totalBytes\":";
        assert_eq!(told(Some(1000)), format!("{before}1000}}}}\n"));
        assert_eq!(told(Some(100)), format!("{before}200}}}}\n"), "files have grown");
        assert_eq!(told(None), format!("{before}null}}}}\n"));
    }

    /// The display ends as well; otherwise this test does not.
    #[test]
    fn work_that_panics_is_not_waited_for() {
        for form in [ProgressForm::None, ProgressForm::Bar, ProgressForm::Lines] {
            let progress = PutProgress::default();
            let work = || -> u64 { panic!("the work fails") };
            let watch = AssertUnwindSafe(|| watched(form, &progress, || None, work));
            assert!(catch_unwind(watch).is_err());
        }
    }

    #[test]
    fn who_asks_for_quiet_gets_no_progress() {
        let mut terminal = Terminal::to(std::io::sink(), true);
        assert_eq!(ProgressForm::of(&terminal), ProgressForm::Lines);
        terminal.silence();
        assert_eq!(ProgressForm::of(&terminal), ProgressForm::None);
    }
}
