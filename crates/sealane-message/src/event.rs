//! The events of a conversation, which never change: `spec/event.md`.

use std::borrow::Cow;

/// 8 random bytes that name an event or an attachment among those of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub [u8; 8]);

/// An event of the same conversation, named by another one. Two senders may choose the same id, so
/// that only both parts together name an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The slot of its sender in the group.
    pub slot: u16,
    /// Its id among the events of that sender.
    pub id: EventId,
}

/// Two texts that belong together: an option's id and words, a fact's name and value.
pub type TextPair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// One thing that somebody did in a conversation. It never changes: what was said is edited,
/// deleted and reacted to by further events, and threads, counts, receipts and polls are what a
/// reader makes of all of them.
///
/// The conversation and the sender are not in it: the group and the slot of the seal say them, and
/// an event cannot claim others.
///
/// Text and bytes are borrowed from what was decoded; [`Event::into_owned`] lets go of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Its own name, which its sender gives to no other event.
    pub id: EventId,
    /// The sender's device, 1 to [`crate::limits::MAX_HANDLE_BYTES`] bytes; none is the only or
    /// first one.
    pub device: Option<Cow<'a, str>>,
    /// When, in milliseconds since 1970-01-01 UTC, by the sender's clock.
    pub time_ms: u64,
    /// The action.
    pub action: Action<'a>,
}

/// The action of an [`Event`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action<'a> {
    /// Says something.
    Message(Message<'a>),
    /// Gives an earlier message other content.
    Edit {
        /// The message.
        of: Reference,
        /// Its content from now on.
        content: Content<'a>,
    },
    /// Takes an earlier message back.
    Delete(Reference),
    /// Reacts to a message.
    React {
        /// The message.
        of: Reference,
        /// The emoji of the reaction.
        emoji: Cow<'a, str>,
    },
    /// Takes a reaction back.
    Unreact {
        /// The message.
        of: Reference,
        /// Which reaction.
        emoji: Cow<'a, str>,
    },
    /// Has read all messages up to this one.
    Read(Reference),
    /// Has received all messages up to this one.
    Deliver(Reference),
    /// Pins a message.
    Pin(Reference),
    /// Lets a pinned message go.
    Unpin(Reference),
    /// Votes in a poll; no choice takes the vote back.
    Vote {
        /// The message with the poll.
        of: Reference,
        /// The ids of the options.
        choices: Vec<Cow<'a, str>>,
    },
    /// Opens the conversation under a name.
    Create(Cow<'a, str>),
    /// Gives the conversation another name.
    Rename(Cow<'a, str>),
    /// Invites somebody.
    Invite(Cow<'a, str>),
    /// Somebody joined.
    Join(Cow<'a, str>),
    /// Somebody left.
    Leave(Cow<'a, str>),
    /// Begins a call.
    Call,
    /// Ends a call that took so many seconds.
    HangUp(u64),
    /// An action of a later version, by its number: a reader shows that something happened.
    Unknown(u64),
}

/// The body of an [`Action::Message`].
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// The content.
    pub content: Content<'a>,
    /// The first message of the thread that it belongs to.
    pub thread: Option<Reference>,
    /// The message that it answers.
    pub reply_to: Option<Reference>,
    /// The people that it mentions, at most [`crate::limits::MAX_MENTIONS`].
    pub mentions: Vec<Cow<'a, str>>,
    /// The attachments, at most [`crate::limits::MAX_ATTACHMENTS`].
    pub attachments: Vec<Attachment<'a>>,
    /// When readers forget it, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: Option<u64>,
    /// Readers show it and do not keep it.
    pub is_ephemeral: bool,
}

impl<'a> From<Content<'a>> for Message<'a> {
    fn from(content: Content<'a>) -> Self {
        Self {
            content,
            thread: None,
            reply_to: None,
            mentions: Vec::new(),
            attachments: Vec::new(),
            expires_ms: None,
            is_ephemeral: false,
        }
    }
}

/// The kinds of content of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Text with a marked-up form.
    Rich {
        /// As it was typed.
        raw: Cow<'a, str>,
        /// As it is shown.
        formatted: Cow<'a, str>,
        /// The addresses in it.
        links: Vec<Cow<'a, str>>,
    },
    /// A piece of a program.
    Code {
        /// Its language.
        language: Cow<'a, str>,
        /// Its text.
        code: Cow<'a, str>,
        /// The file that it is from.
        filename: Option<Cow<'a, str>>,
        /// Whether lines are shown with numbers.
        has_line_numbers: bool,
    },
    /// A spoken message.
    Voice {
        /// Its length.
        seconds: u64,
        /// The wave that a player draws.
        waveform: Cow<'a, [u8]>,
        /// The spoken words as text.
        transcription: Option<Cow<'a, str>>,
        /// The type of the recording.
        mime: Cow<'a, str>,
        /// The recording.
        data: Cow<'a, [u8]>,
    },
    /// A film.
    Video {
        /// Its length.
        seconds: u64,
        /// A picture of it.
        thumbnail: Cow<'a, [u8]>,
        /// Pixels across.
        width: u64,
        /// Pixels down.
        height: u64,
        /// The type of the film.
        mime: Cow<'a, str>,
        /// The film.
        data: Cow<'a, [u8]>,
    },
    /// A place.
    Location {
        /// Degrees north.
        latitude: f64,
        /// Degrees east.
        longitude: f64,
        /// Within so many metres.
        accuracy_m: Option<f64>,
        /// Its address.
        address: Option<Cow<'a, str>>,
        /// Its name.
        place: Option<Cow<'a, str>>,
    },
    /// A question with answers to choose from; [`Action::Vote`] chooses.
    Poll {
        /// The question.
        question: Cow<'a, str>,
        /// Id and text of each answer, at most [`crate::limits::MAX_POLL_OPTIONS`].
        options: Vec<TextPair<'a>>,
        /// Whether one may choose several.
        is_multiple: bool,
        /// Whether readers hide who chose what.
        is_anonymous: bool,
        /// When it ends, in milliseconds since 1970-01-01 UTC.
        closes_ms: Option<u64>,
    },
    /// A picture of a pack.
    Sticker {
        /// The pack.
        pack: Cow<'a, str>,
        /// The picture within it.
        sticker: Cow<'a, str>,
        /// The emoji that it stands for.
        emoji: Cow<'a, str>,
        /// Whether it moves.
        is_animated: bool,
        /// The picture.
        data: Cow<'a, [u8]>,
    },
    /// A moving picture that lies elsewhere.
    Gif {
        /// Where.
        url: Cow<'a, str>,
        /// A still of it.
        thumbnail: Cow<'a, [u8]>,
        /// Pixels across.
        width: u64,
        /// Pixels down.
        height: u64,
        /// The text below it.
        caption: Option<Cow<'a, str>>,
    },
    /// Content of a later version: a reader shows that there is a message that it cannot show.
    Unknown {
        /// The number of its kind.
        kind: u64,
        /// Its map as it was read, the kind included, so that it can be passed on unchanged.
        map: Cow<'a, [u8]>,
    },
}

/// Something that comes with a message and lies in a vault.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment<'a> {
    /// Its own name, which its sender gives to no other attachment.
    pub id: EventId,
    /// The name for the file.
    pub filename: Cow<'a, str>,
    /// Its type.
    pub mime: Cow<'a, str>,
    /// Its length in bytes.
    pub size: u64,
    /// A small picture of it.
    pub thumbnail: Option<Cow<'a, [u8]>>,
    /// Where it lies: the id of the vault's object.
    pub object: Cow<'a, [u8]>,
    /// The key that opens it, if it has a key of its own.
    pub key: Option<Cow<'a, [u8]>>,
    /// Further facts of it, by name.
    pub metadata: Vec<TextPair<'a>>,
}

impl<'a> Event<'a> {
    /// An event of the sender's only or first device.
    pub fn new(id: EventId, time_ms: u64, action: Action<'a>) -> Self {
        Self { id, device: None, time_ms, action }
    }

    /// The same event with text and bytes of its own.
    pub fn into_owned(self) -> Event<'static> {
        Event {
            id: self.id,
            device: self.device.map(own),
            time_ms: self.time_ms,
            action: self.action.into_owned(),
        }
    }
}

impl Action<'_> {
    fn into_owned(self) -> Action<'static> {
        match self {
            Action::Message(message) => Action::Message(message.into_owned()),
            Action::Edit { of, content } => Action::Edit { of, content: content.into_owned() },
            Action::Delete(of) => Action::Delete(of),
            Action::React { of, emoji } => Action::React { of, emoji: own(emoji) },
            Action::Unreact { of, emoji } => Action::Unreact { of, emoji: own(emoji) },
            Action::Read(of) => Action::Read(of),
            Action::Deliver(of) => Action::Deliver(of),
            Action::Pin(of) => Action::Pin(of),
            Action::Unpin(of) => Action::Unpin(of),
            Action::Vote { of, choices } => Action::Vote { of, choices: all(choices) },
            Action::Create(name) => Action::Create(own(name)),
            Action::Rename(name) => Action::Rename(own(name)),
            Action::Invite(who) => Action::Invite(own(who)),
            Action::Join(who) => Action::Join(own(who)),
            Action::Leave(who) => Action::Leave(own(who)),
            Action::Call => Action::Call,
            Action::HangUp(seconds) => Action::HangUp(seconds),
            Action::Unknown(number) => Action::Unknown(number),
        }
    }
}

impl Message<'_> {
    fn into_owned(self) -> Message<'static> {
        Message {
            content: self.content.into_owned(),
            thread: self.thread,
            reply_to: self.reply_to,
            mentions: all(self.mentions),
            attachments: self.attachments.into_iter().map(Attachment::into_owned).collect(),
            expires_ms: self.expires_ms,
            is_ephemeral: self.is_ephemeral,
        }
    }
}

impl Content<'_> {
    fn into_owned(self) -> Content<'static> {
        use Content::{Code, Gif, Location, Poll, Rich, Sticker, Text, Unknown, Video, Voice};
        match self {
            Text(text) => Text(own(text)),
            Rich { raw, formatted, links } => {
                Rich { raw: own(raw), formatted: own(formatted), links: all(links) }
            }
            Code { language, code, filename, has_line_numbers } => {
                let (language, code, filename) = (own(language), own(code), filename.map(own));
                Code { language, code, filename, has_line_numbers }
            }
            Voice { seconds, waveform, transcription, mime, data } => {
                let (waveform, transcription) = (own(waveform), transcription.map(own));
                Voice { seconds, waveform, transcription, mime: own(mime), data: own(data) }
            }
            Video { seconds, thumbnail, width, height, mime, data } => {
                let (thumbnail, mime, data) = (own(thumbnail), own(mime), own(data));
                Video { seconds, thumbnail, width, height, mime, data }
            }
            Location { latitude, longitude, accuracy_m, address, place } => {
                let (address, place) = (address.map(own), place.map(own));
                Location { latitude, longitude, accuracy_m, address, place }
            }
            Poll { question, options, is_multiple, is_anonymous, closes_ms } => {
                let (question, options) = (own(question), pairs(options));
                Poll { question, options, is_multiple, is_anonymous, closes_ms }
            }
            Sticker { pack, sticker, emoji, is_animated, data } => {
                let (pack, sticker, emoji) = (own(pack), own(sticker), own(emoji));
                Sticker { pack, sticker, emoji, is_animated, data: own(data) }
            }
            Gif { url, thumbnail, width, height, caption } => {
                let (url, thumbnail, caption) = (own(url), own(thumbnail), caption.map(own));
                Gif { url, thumbnail, width, height, caption }
            }
            Unknown { kind, map } => Unknown { kind, map: own(map) },
        }
    }
}

impl Attachment<'_> {
    fn into_owned(self) -> Attachment<'static> {
        Attachment {
            id: self.id,
            filename: own(self.filename),
            mime: own(self.mime),
            size: self.size,
            thumbnail: self.thumbnail.map(own),
            object: own(self.object),
            key: self.key.map(own),
            metadata: pairs(self.metadata),
        }
    }
}

fn own<T: ToOwned + ?Sized + 'static>(value: Cow<'_, T>) -> Cow<'static, T> {
    Cow::Owned(value.into_owned())
}

fn all(values: Vec<Cow<'_, str>>) -> Vec<Cow<'static, str>> {
    values.into_iter().map(own).collect()
}

fn pairs(values: Vec<TextPair<'_>>) -> Vec<TextPair<'static>> {
    values.into_iter().map(|(name, value)| (own(name), own(value))).collect()
}
