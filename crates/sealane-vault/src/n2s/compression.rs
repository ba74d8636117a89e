//! LZ4 frames as python-lz4 writes them with its defaults.

use std::io::{Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::{Error, MAX_N2S_FILE_BYTES};

const BLOCK_BYTES: usize = 64 << 10;

/// One frame: blocks of 64 KiB, linked if there is more than one, no checksums, and the size of
/// the content unless it is empty.
///
/// The frame's structure is that of the reference encoder. How well a block is compressed is each
/// encoder's own, so that blobs of compressible files differ from encoder to encoder.
pub(super) fn compress(content: &[u8]) -> Result<Vec<u8>, Error> {
    let one_block = content.len() <= BLOCK_BYTES;
    let info = FrameInfo::new()
        .content_size((!content.is_empty()).then_some(content.len() as u64))
        .block_size(BlockSize::Max64KB)
        .block_mode(if one_block { BlockMode::Independent } else { BlockMode::Linked });
    let mut encoder = FrameEncoder::with_frame_info(info, vec![]);
    encoder.write_all(content).map_err(|_| Error::Compression)?;
    // An empty write does not begin a frame.
    if content.is_empty() {
        encoder.flush().map_err(|_| Error::Compression)?;
    }
    encoder.finish().map_err(|_| Error::Compression)
}

/// All frames one after the other, of at most `size` bytes together.
pub(super) fn decompress(mut frames: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    if size > MAX_N2S_FILE_BYTES {
        return Err(Error::TooLarge);
    }
    // Memory grows with what is there, not with what is announced.
    let mut content = vec![];
    while !frames.is_empty() {
        let left = size + 1 - content.len() as u64;
        let read = FrameDecoder::new(&mut frames).take(left).read_to_end(&mut content);
        read.map_err(|_| Error::Compression)?;
        if content.len() as u64 > size {
            return Err(Error::WrongContent);
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn frames_are_those_of_the_reference_encoder_where_nothing_compresses() {
        assert_eq!(hex(&compress(b"").unwrap()), "04224d1860408200000000");
        let hello = compress(b"hello n2s\n").unwrap();
        assert_eq!(
            hex(&hello),
            "04224d1868400a00000000000000470a00008068656c6c6f206e32730a00000000"
        );
        let mut noise = vec![0; 70_000];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let two_blocks = compress(&noise).unwrap();
        assert_eq!(hex(&two_blocks[..15]), "04224d184840701101000000000077");
        assert_eq!(two_blocks.len(), 15 + 4 + 65_536 + 4 + (70_000 - 65_536) + 4);
        let full_block = compress(&noise[..65_536]).unwrap();
        assert_eq!(hex(&full_block[..19]), "04224d18684000000100000000001d00000180");
    }

    #[test]
    fn a_frame_that_grows_beyond_its_size_is_stopped() {
        let frame = compress(&vec![0; 1 << 20]).unwrap();
        assert!(frame.len() < 10_000);
        assert_eq!(decompress(&frame, 1000), Err(Error::WrongContent));
        assert_eq!(decompress(&frame, u64::MAX), Err(Error::TooLarge));
        assert_eq!(decompress(&frame, 1 << 20).unwrap().len(), 1 << 20);
    }

    #[test]
    fn frames_one_after_the_other_are_one_file() {
        let frames =
            [compress(b"one ").unwrap(), compress(b"").unwrap(), compress(b"two").unwrap()];
        assert_eq!(decompress(&frames.concat(), 7).unwrap(), b"one two");
        assert_eq!(decompress(b"", 0).unwrap(), b"");
        assert_eq!(decompress(b"\x04\x22", 5), Err(Error::Compression));
    }
}
