//! Writes `vectors/seal`: `cargo run -p sealane-seal --example seal_vectors`

#[path = "../tests/it/shared/cases.rs"]
mod cases;
#[path = "../tests/it/shared/live.rs"]
mod live;
#[path = "../tests/it/shared/world.rs"]
mod world;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/seal");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in cases::files() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
