//! The vectors in the repository are what this code makes, and read as they say.

#[path = "../../examples/mesh_vectors.rs"]
#[allow(dead_code)]
mod make;

#[test]
fn the_vectors_are_what_the_code_makes() {
    for (name, made) in make::files() {
        let path = format!("{}/../../vectors/mesh/{name}", env!("CARGO_MANIFEST_DIR"));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "{name}: cargo run -p sealane-mesh --example mesh_vectors");
    }
}
