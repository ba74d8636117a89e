//! Writes `vectors/document`: `cargo run -p sealane-codec --example document_vectors`

#[path = "../tests/it/shared/document_vectors.rs"]
mod document_vectors;

fn main() -> std::io::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/document");
    std::fs::create_dir_all(folder)?;
    std::fs::write(format!("{folder}/bodies.json"), document_vectors::text())
}
