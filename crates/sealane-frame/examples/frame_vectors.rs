//! Writes `vectors/frame`: `cargo run -p sealane-frame --example frame_vectors`

#[path = "../tests/it/shared/compact_vectors.rs"]
mod compact_vectors;
#[path = "../tests/it/shared/members.rs"]
mod members;
#[path = "../tests/it/shared/vectors.rs"]
mod vectors;

fn main() -> std::io::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/frame");
    std::fs::create_dir_all(folder)?;
    for (name, text) in vectors::files() {
        std::fs::write(format!("{folder}/{name}"), text)?;
    }
    Ok(())
}
