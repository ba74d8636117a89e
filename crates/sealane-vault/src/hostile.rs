//! What must hold for any bytes that a store may serve, behind a cipher or not: the fuzz targets
//! and the replay of their corpus call this.

use crate::format::config::Config;
use crate::format::pack::{read_trailer, write_trailer};
use crate::format::page::{PageDraft, read_list, read_page, write_pieces};
use crate::format::snapshot::{Sealed, read_body};
use crate::keys::{KeySlot, slot_key};

/// Reads what follows the first byte as the part of a vault that this byte names.
///
/// # Panics
/// If what was read is not written again as the same.
pub fn part(bytes: &[u8]) {
    let Some((what, bytes)) = bytes.split_first() else { return };
    match what % 7 {
        0 => drop(Config::read(bytes)),
        1 => slot(bytes),
        2 => snapshot(bytes),
        3 => drop(read_body(bytes)),
        4 => {
            if let Ok(chunks) = read_trailer(bytes) {
                assert_eq!(write_trailer(&chunks), bytes);
            }
        }
        5 => {
            if let Ok(pieces) = read_list(bytes) {
                let mut written = vec![];
                write_pieces(&mut written, &pieces);
                assert_eq!(written, bytes);
            }
        }
        _ => page(bytes),
    }
}

fn slot(bytes: &[u8]) {
    // Its vault and id stand in it, so that more than the comparison with the key is reached.
    if let (Some(vault), Some(id)) = (array(bytes, 8), array(bytes, 24)) {
        drop(KeySlot::read(&slot_key(&id), bytes.to_vec(), &vault));
    }
}

fn snapshot(bytes: &[u8]) {
    if let (Some(vault), Some(number)) = (array(bytes, 8), array(bytes, 24)) {
        drop(Sealed::read(u64::from_le_bytes(number), bytes.to_vec(), &vault));
    }
}

/// A writer may share less of a path than it could and may add what later versions know, so bytes
/// may differ; entries may not.
fn page(bytes: &[u8]) {
    let Ok(entries) = read_page(bytes) else { return };
    let mut draft = PageDraft::default();
    entries.iter().for_each(|entry| draft.push(entry));
    let again = read_page(&draft.plaintext()).ok();
    assert_eq!(again.as_ref(), Some(&entries));
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
