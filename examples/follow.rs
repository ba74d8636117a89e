//! Prints what vehicles say, from the beginning on: `cargo run -p sealane --example follow`.

use sealane::{Client, Error, StartPosition}; // cargo add sealane --path crates/sealane

/// Prints where the vehicles are, from the beginning on.
pub async fn follow() -> Result<(), Error> {
    let client = Client::connect("127.0.0.1:9087")?;
    let mut places = client.subscribe("fleet/*/location").from(StartPosition::First).await?;
    while let Some(message) = places.next().await {
        println!("{:?}", message?.value()?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    follow().await
}
