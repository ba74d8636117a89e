use std::collections::HashSet;

use crate::Error;
use crate::format::chunk::{ChunkKind, Id};
use crate::format::page::{Node, Piece, read_page};
use crate::get::Chunks;
use crate::put::IdHash;

/// The chunks that snapshots need.
#[derive(Default)]
pub(super) struct Live {
    pub(super) ids: HashSet<Id, IdHash>,
}

impl Live {
    /// Adds all that a page needs. What was added already is not read again.
    pub(super) fn add_page(
        &mut self,
        chunks: &mut Chunks<'_>,
        page: &Id,
        piece: &mut dyn FnMut(&Piece, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.ids.insert(*page) {
            return Ok(());
        }
        for entry in chunks.read(page, ChunkKind::Page).and_then(read_page)? {
            let Node::File { pieces, .. } = &entry.node else { continue };
            for part in pieces {
                match part {
                    Piece::List { bytes, id } => {
                        if self.ids.insert(*id) {
                            for part in chunks.list(*bytes, id)? {
                                self.piece(&part, &entry.shown(), piece)?;
                            }
                        }
                    }
                    other => self.piece(other, &entry.shown(), piece)?,
                }
            }
        }
        Ok(())
    }

    fn piece(
        &mut self,
        part: &Piece,
        path: &str,
        piece: &mut dyn FnMut(&Piece, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Piece::Chunk { id, .. } = part
            && self.ids.insert(*id)
        {
            piece(part, path)?;
        }
        Ok(())
    }
}
