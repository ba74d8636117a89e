//! Writes what vehicles report into a file, a line of JSON for each message, and goes on where it
//! was when it is started again:
//!
//! ```sh
//! cargo run -p sealane --example telemetry_logger -- 127.0.0.1:9087 places.jsonl
//! ```
//!
//! The hub keeps the place, under the consumer's name. A message is acknowledged after its line is
//! on disk, so that a line may be written twice, after a crash between the two, and none is lost.

use std::fs::{File, OpenOptions};
use std::io::Write;

use futures_util::StreamExt;
use sealane::{Client, Codec, ReceivedMessage};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How many messages share one fsync, at most.
const GROUP: usize = 256;

/// Logs every location that is published, until the subscription ends.
pub async fn log(address: &str, path: &str) -> Outcome<()> {
    let client = Client::connect(address)?;
    let places = client.subscribe("fleet/*/location").consumer("logger").codec(Codec::Json).await?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // A group is what has come so far: while messages are rare, each is written as it comes.
    let mut groups = places.ready_chunks(GROUP);
    while let Some(group) = groups.next().await {
        let group: Vec<ReceivedMessage> = group.into_iter().collect::<Result<_, _>>()?;
        write(&mut file, &group)?;
        for message in group {
            message.ack();
        }
    }
    Ok(())
}

/// Writes a line for each message, and returns when all of them are on disk.
fn write(file: &mut File, group: &[ReceivedMessage]) -> Outcome<()> {
    let mut lines = String::new();
    for message in group {
        let stream = message.stream.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
        let (at, body) = (message.stored_ms, std::str::from_utf8(&message.envelope)?);
        lines += &format!("{{\"stream\":\"{stream}\",\"storedMs\":{at},\"message\":{body}}}\n");
    }
    file.write_all(lines.as_bytes())?;
    Ok(file.sync_data()?)
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:9087".to_owned());
    let path = words.next().unwrap_or_else(|| "places.jsonl".to_owned());
    log(&address, &path).await
}
