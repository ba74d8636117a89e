//! The account of one unit or frame.

use sealane::Value;
use sealane_frame::FrameError;
use sealane_link::LinkAddress;
use sealane_message::ErrorInfo;

use super::body::InspectBody;
use super::form::FrameForm;
use super::keys::FrameOpening;

/// The kind of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InspectedKind {
    Frame,
    Fragment,
    Batch,
}

impl InspectedKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            InspectedKind::Frame => "frame",
            InspectedKind::Fragment => "fragment",
            InspectedKind::Batch => "batch",
        }
    }
}

/// Where bytes stand with respect to the seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealCoverage {
    /// No seal protects them.
    Relay,
    /// Covered by the tag.
    Authenticated,
    /// The SFrame header, covered too.
    SealHeader,
    /// Body in clear, or ciphertext.
    Body,
    /// The tag that covers the rest.
    Tag,
    /// Not in these bytes: the link says it.
    Link,
    /// The header of a fragment or batch.
    Unit,
    /// Bytes whose place cannot be told.
    Unknown,
}

impl SealCoverage {
    pub(super) fn name(self) -> &'static str {
        match self {
            SealCoverage::Relay => "relay",
            SealCoverage::Authenticated => "authenticated",
            SealCoverage::SealHeader => "sframe",
            SealCoverage::Body => "body",
            SealCoverage::Tag => "tag",
            SealCoverage::Link => "link",
            SealCoverage::Unit => "unit",
            SealCoverage::Unknown => "unknown",
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            SealCoverage::Relay => "a relay could change: no seal protects these bytes",
            SealCoverage::Authenticated => {
                "authenticated: a change is noticed when the frame is opened"
            }
            SealCoverage::SealHeader => "SFrame header, authenticated",
            SealCoverage::Body => "body, authenticated",
            SealCoverage::Tag => "tag: covers all but what a relay could change",
            SealCoverage::Link => "authenticated too, but not in these bytes: the link says it",
            SealCoverage::Unit => "not authenticated: the frames within are, when they are opened",
            SealCoverage::Unknown => "of these bytes nothing can be said",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InspectRow {
    pub(super) part: SealCoverage,
    /// From the first byte of the frame or unit; none for what is not in its bytes.
    pub(super) at: Option<usize>,
    pub(super) bytes: Vec<u8>,
    pub(super) field: &'static str,
    pub(super) value: Value,
    pub(super) meaning: String,
}

/// Where a unit was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CaptureSource {
    /// The whole input.
    Whole,
    /// A line of hexadecimal digits.
    Line(u64),
    /// A UDP payload.
    Packet(CapturedPacket),
}

/// A packet of a capture: a datagram of UDP, or a frame of Ethernet with a unit in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    /// From 1.
    pub(super) number: u64,
    /// Where its record begins in the capture.
    pub(super) offset: u64,
    pub(super) time_ms: Option<u64>,
    pub(super) source: LinkAddress,
    pub(super) destination: LinkAddress,
}

/// Where a frame or unit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InspectOrigin {
    pub(super) captured: CaptureSource,
    /// Its place in a batch, from 1.
    pub(super) item: Option<usize>,
    /// Id and number of the fragments that it was put together from.
    pub(super) parts: Option<(u16, usize)>,
    /// Its length before the capture cut it.
    pub(super) whole_bytes: Option<usize>,
}

impl InspectOrigin {
    /// Whether it is all that a packet carried.
    pub(super) fn is_whole_packet(&self) -> bool {
        matches!(self.captured, CaptureSource::Packet(_)) && self.whole_bytes.is_none()
    }
}

/// Why bytes are not what they should be.
#[derive(Debug, Clone)]
pub(super) struct InspectRefusal {
    pub(super) info: &'static ErrorInfo,
    pub(super) message: String,
}

impl From<FrameError> for InspectRefusal {
    fn from(error: FrameError) -> Self {
        Self { info: error.info(), message: error.to_string() }
    }
}

/// All that is said about one unit or frame.
#[derive(Debug)]
pub(super) struct InspectAccount {
    pub(super) what: InspectedKind,
    pub(super) origin: InspectOrigin,
    pub(super) form: Option<FrameForm>,
    pub(super) bytes: usize,
    /// In a few words.
    pub(super) summary: String,
    pub(super) rows: Vec<InspectRow>,
    pub(super) refusal: Option<InspectRefusal>,
    /// The facts that are missing to explain the rest.
    pub(super) missing: Option<String>,
    pub(super) body: Option<InspectBody>,
    pub(super) opening: Option<FrameOpening>,
}

impl InspectAccount {
    pub(super) fn new(what: InspectedKind, origin: &InspectOrigin, bytes: usize) -> Self {
        Self {
            what,
            origin: origin.clone(),
            form: None,
            bytes,
            summary: String::new(),
            rows: Vec::new(),
            refusal: None,
            missing: None,
            body: None,
            opening: None,
        }
    }

    /// Whether all of it was explained, some, or it was refused, which a seal that does not open
    /// counts as.
    pub(super) fn status(&self) -> &'static str {
        match () {
            () if self.refused().is_some() => "refused",
            () if self.missing.is_some() => "partial",
            () => "explained",
        }
    }

    /// Why it was refused: its form, or its seal.
    pub(super) fn refused(&self) -> Option<&InspectRefusal> {
        self.refusal.as_ref().or(match &self.opening {
            Some(FrameOpening::Refused(refusal)) => Some(refusal),
            _ => None,
        })
    }
}
