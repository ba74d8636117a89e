//! The facts about an inspected file that can be said beforehand.

/// The content of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum InspectInputKind {
    /// The bytes of one frame of the full form
    Full,
    /// The bytes of one unit: a frame of either form, a fragment or a batch
    Unit,
    /// Hexadecimal text: one unit per line; blanks and # comments are allowed
    Hex,
    /// Packets, as pcap or pcapng
    Pcap,
}

/// The form of a frame, if it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FrameForm {
    /// With the header of 64 bytes
    Full,
    /// With dictionary byte and short header
    Compact,
}

impl FrameForm {
    pub(super) fn name(self) -> &'static str {
        match self {
            FrameForm::Full => "full",
            FrameForm::Compact => "compact",
        }
    }
}

/// The files and lines of this verb, for `--help` and the man page.
pub const FORMATS: &str = "\
A full frame, a compact frame, a fragment and a batch are told apart as on a
link; a valid full frame is always one, whatever its first byte. So is a full
frame without its hops, with the hop seal of a mesh behind it or without one.
Fragments are put together as a node does it, within the same bounds, by the
clock of the capture. Of a packet only the payload of UDP is looked at, over
Ethernet, Linux cooked, loopback and raw IP.

The file of --dictionary says what the ends of one direction of a link know, in
hexadecimal:
  04 a1a2a3a4 ffffffffffffffff 03 05
      the dictionary byte; then group tag, destination, codec and flags
  slot 7 a1a2a3a4 5151515151515151
      who has slot 7 of that group
  context 7 a1a2a3a4 0102030405060708 12
      what slot 7 announced: its context, and its count of orders
  epoch a1a2a3a4 21
      near which epoch that group is [default: 0]

The file of --group-keys is TOML, with one table for each group and secret; none
of it is ever printed:
  [[group]]
  tag = \"a1a2a3a4\"       # 4 bytes: the group tag in frames
  id = \"0707…\"           # 32 bytes
  suite = \"AES_256_GCM_SHA512_128\"
                       # the default; or CHACHA20_POLY1305_SHA512_128, 5, 0xf001
  pair = false           # whether it is a group of two
  secret = \"…\"           # 32 bytes: the secret of ...
  epoch = 21             # ... this epoch
  signers = { 7 = \"…\" }  # by slot, the Ed25519 keys that verify class S

With --json each frame, fragment and batch is one line, and a last line has the
counts:
  what     frame, fragment, batch or summary; number counts each sort from 1
  line     where it was captured; or packet, captureOffset, timeMs, from, to;
           item: in a batch; fragmentId, fragments: what it was put together
           from; wholeBytes: if it was cut
  form     full or compact; bytes: its length
  status   explained, partial (see missing) or refused (see error, opening)
  fields   a list of part (relay, authenticated, sframe, body, tag, link, unit,
           unknown), offset, length, hex, field, value, meaning
  opening  with --group-keys: result (opened, noKeys or refused), epoch, slot,
           counter, error
  body     the body, by its codec; bodyText or bodyHex if it has none; bodyNote
           says why; bodyTimeMs: when an urgent message was made, by its
           sender's clock

Exit codes:
  0  all was read; what lacks a dictionary or keys is not refused
  1  a frame, fragment or batch was refused, or the capture is damaged
  2  wrong usage, or a file that cannot be read or is not what it should be";
