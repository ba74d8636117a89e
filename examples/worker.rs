//! Runs a program for each job, and tries again where it fails:
//!
//! ```sh
//! cargo run -p sealane --example worker -- 127.0.0.1:9087 jobs/mail ./send-mail
//! ```
//!
//! The program reads the message as JSON on standard input. If it exits with 0, the job is done.
//! If not, the job comes again after 1 s, then after 2 s, 4 s and 8 s. After five attempts it is a
//! dead letter in `dead/jobs/mail`. Start as many workers as you like: they share the jobs. The
//! jobs of a worker that is killed come to the others after `ack_wait`.

use std::process::Stdio;
use std::time::Duration;

use sealane::{Client, Codec, ReceivedMessage};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// After so many deliveries a job is a dead letter.
const ATTEMPTS: u32 = 5;

/// A program that takes longer than this may be run a second time elsewhere.
const ACK_WAIT: Duration = Duration::from_secs(300);

/// Works on the jobs of a topic until the subscription ends. A job that fails comes again after
/// `wait`, and after twice as long each time.
pub async fn work(address: &str, topic: &str, program: &str, wait: Duration) -> Outcome<()> {
    let client = Client::connect(address)?;
    let jobs = client.subscribe(topic).consumer("worker").codec(Codec::Json);
    // One job at a time: what this worker does not hold, another one can do.
    let jobs = jobs.credit(1).ack_wait(ACK_WAIT).max_attempts(ATTEMPTS);
    let mut jobs = jobs.await?;
    while let Some(job) = jobs.next().await {
        let job = job?;
        match run(program, &job).await {
            Ok(()) => job.ack(),
            Err(failure) => {
                eprintln!("job {}, attempt {}: {failure}", job.offset, job.attempt);
                job.nack(wait * 2_u32.pow(job.attempt.saturating_sub(1).min(10)));
            }
        }
    }
    Ok(())
}

async fn run(program: &str, job: &ReceivedMessage) -> Outcome<()> {
    let mut child = Command::new(program).stdin(Stdio::piped()).kill_on_drop(true).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its job may still be content with it.
        let _ = input.write_all(&job.envelope).await;
    }
    let status = child.wait().await?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, topic, program] = words.as_slice() else {
        return Err("usage: worker ADDRESS TOPIC PROGRAM".into());
    };
    work(address, topic, program, Duration::from_secs(1)).await
}
