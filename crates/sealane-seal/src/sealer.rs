use std::fmt;
use std::ops::Range;

use crate::aead::Key;
use crate::associated::Associated;
use crate::header::{Form, KeyId, SframeHeader};
use crate::limits::{
    MAX_COUNTER, MAX_KEY_MESSAGES, MAX_SEALED_BODY_BYTES, SIGNATURE_BYTES, TAG_BYTES,
};
use crate::sign::SigningKey;
use crate::{Attached, Binding, Class, Epoch, Epochs, Error, Group, SenderContext, Slot, derive};

/// A member of a group that sends: one slot, one start, one epoch, and a counter that rises.
///
/// Its keys are those of its [`SenderContext`]. Whoever makes one draws a context that nobody has
/// used before: in a new process, after a fork, after [`Error::CountersUsedUp`].
pub struct Sealer {
    group: Group,
    slot: Slot,
    epoch: Epoch,
    context: SenderContext,
    keys: [Option<Key>; 4],
    next: u64,
    /// Messages that may still be sealed under this context.
    left: u64,
    signing: Option<SigningKey>,
    associated: Associated,
}

impl Sealer {
    /// A sender in the newest epoch, whose first message has the counter `next`.
    ///
    /// # Errors
    ///
    /// [`Error::EpochUnknown`] if the epochs are another group's, [`Error::Class`] for a slot
    /// beyond 1 in a pair.
    pub fn new(
        group: Group,
        slot: Slot,
        context: SenderContext,
        epochs: &Epochs,
        next: u64,
    ) -> Result<Sealer, Error> {
        group.check(Class::Authenticated, slot)?;
        Ok(Sealer {
            group,
            slot,
            epoch: epochs.newest(),
            context,
            keys: keys(group, slot, context, epochs)?,
            next,
            left: MAX_KEY_MESSAGES,
            signing: None,
            associated: Associated::new(group.id()),
        })
    }

    /// Sets the key of class S.
    pub fn set_signing_key(&mut self, key: SigningKey) {
        self.signing = Some(key);
    }

    /// The own slot.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The epoch that is sealed in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The context that its keys are of.
    pub fn context(&self) -> SenderContext {
        self.context
    }

    /// Goes on at a counter, if it has not come as far yet: what lies between was used by others of
    /// the same slot.
    pub fn go_on_at(&mut self, counter: u64) {
        self.next = self.next.max(counter);
    }

    /// The counter of the next message, for a frame that names it in its authenticated part.
    ///
    /// # Errors
    ///
    /// [`Error::CountersUsedUp`] if no message can be sealed any more.
    pub fn next_counter(&self) -> Result<u64, Error> {
        let is_left = self.left > 0 && self.next <= MAX_COUNTER;
        if is_left { Ok(self.next) } else { Err(Error::CountersUsedUp) }
    }

    /// The bytes of the header of the next message, in the full form.
    ///
    /// # Errors
    ///
    /// As [`Sealer::next_counter`].
    #[inline]
    pub fn next_header_bytes(&self, class: Class) -> Result<usize, Error> {
        Ok(self.header(class, self.next_counter()?).encode(Form::Full).len())
    }

    /// Seals the body that stands in `buf` without moving it, and gives the place of the sealed
    /// bytes. `binding` and `meta` are authenticated with it and do not become part of them.
    ///
    /// The header goes right before the body ([`Class::head_bytes`]), signature and tag right
    /// behind it ([`Class::tail_bytes`]); in class A header and tag go behind.
    ///
    /// # Errors
    ///
    /// The body is zeroed then, so that it cannot be sent by mistake. [`Error::NoRoom`],
    /// [`Error::TooLarge`], [`Error::Class`], [`Error::NoSigningKey`], and those of
    /// [`Sealer::next_counter`].
    pub fn seal_in_place(
        &mut self,
        class: Class,
        form: Form,
        binding: &Binding,
        meta: &[u8],
        buf: &mut [u8],
        body: Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let attached = Attached { context: self.context, binding, meta };
        let sealed = self.try_seal(class, form, &attached, buf, &body);
        if sealed.is_err() {
            let end = body.end.min(buf.len());
            buf.get_mut(body.start..end).unwrap_or_default().fill(0);
        }
        sealed
    }

    /// Appends the sealed form of `body` to `out` and gives its place there.
    ///
    /// # Errors
    ///
    /// As [`Sealer::seal_in_place`]; nothing is appended then.
    pub fn append(
        &mut self,
        class: Class,
        form: Form,
        binding: &Binding,
        meta: &[u8],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Range<usize>, Error> {
        let header = self.header(class, self.next_counter()?).encode(form);
        let head = if class == Class::Authenticated { 0 } else { header.len() };
        let start = out.len();
        let body_start = start + head;
        out.extend_from_slice(header.get(..head).unwrap_or_default());
        out.extend_from_slice(body);
        let body_end = out.len();
        out.extend(std::iter::repeat_n(0, class.tail_bytes()));
        let sealed = self.seal_in_place(class, form, binding, meta, out, body_start..body_end);
        out.truncate(sealed.as_ref().map_or(start, |sealed| sealed.end));
        sealed
    }

    fn header(&self, class: Class, counter: u64) -> SframeHeader {
        SframeHeader { key: KeyId::new(self.slot, class, self.epoch), counter }
    }

    fn try_seal(
        &mut self,
        class: Class,
        form: Form,
        attached: &Attached<'_>,
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        self.group.check(class, self.slot)?;
        let is_in_buf = body.start <= body.end && body.end <= buf.len();
        if !is_in_buf {
            return Err(Error::NoRoom);
        }
        if body.len() > MAX_SEALED_BODY_BYTES {
            return Err(Error::TooLarge);
        }
        let header = self.header(class, self.next_counter()?);
        let encoded = header.encode(form);
        if class == Class::Authenticated {
            self.seal_clear(&header, &encoded, attached, buf, body)
        } else {
            self.seal_secret(&header, &encoded, attached, buf, body)
        }
    }

    /// Body, header, tag.
    fn seal_clear(
        &mut self,
        header: &SframeHeader,
        encoded: &[u8],
        attached: &Attached<'_>,
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let (text, tail) = buf.split_at_mut_checked(body.end).ok_or(Error::NoRoom)?;
        let (head, tail) = tail.split_at_mut_checked(encoded.len()).ok_or(Error::NoRoom)?;
        let tag = tail.first_chunk_mut().ok_or(Error::NoRoom)?;
        let text = text.get(body.start..).ok_or(Error::NoRoom)?;
        self.associated.fill(header, attached, Some(text))?;
        *tag = self.protect(header, &mut [])?;
        head.copy_from_slice(encoded);
        Ok(body.start..body.end + encoded.len() + TAG_BYTES)
    }

    /// Header, ciphertext of body and signature, tag.
    #[inline]
    fn seal_secret(
        &mut self,
        header: &SframeHeader,
        encoded: &[u8],
        attached: &Attached<'_>,
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let class = header.key.class;
        let start = body.start.checked_sub(encoded.len()).ok_or(Error::NoRoom)?;
        let text_end = body.end + class.signature_bytes();
        let (before, tail) = buf.split_at_mut_checked(text_end).ok_or(Error::NoRoom)?;
        let tag = tail.first_chunk_mut().ok_or(Error::NoRoom)?;
        let (before, text) = before.split_at_mut_checked(body.start).ok_or(Error::NoRoom)?;
        self.associated.fill(header, attached, None)?;
        if class == Class::Signed {
            let signing = self.signing.as_ref().ok_or(Error::NoSigningKey)?;
            let (plain, target) =
                text.split_last_chunk_mut::<SIGNATURE_BYTES>().ok_or(Error::NoRoom)?;
            *target = self.associated.signed(self.epoch, plain, |all| signing.sign(all))?;
        }
        *tag = self.protect(header, text)?;
        before.get_mut(start..).ok_or(Error::NoRoom)?.copy_from_slice(encoded);
        Ok(start..text_end + TAG_BYTES)
    }

    /// Uses the counter up and applies the key.
    #[inline]
    fn protect(
        &mut self,
        header: &SframeHeader,
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let key = self.keys.get(usize::from(header.key.class.number()));
        let key = key.and_then(Option::as_ref).ok_or(Error::Class)?;
        debug_assert_eq!(header.counter, self.next, "no counter is used twice");
        self.next += 1;
        self.left -= 1;
        key.seal(header.counter, self.associated.bytes(), text)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Sealer");
        out.field("group", &self.group).field("slot", &self.slot).field("epoch", &self.epoch);
        out.field("context", &self.context).field("next", &self.next).finish_non_exhaustive()
    }
}

/// The keys of the classes that the group allows.
fn keys(
    group: Group,
    slot: Slot,
    context: SenderContext,
    epochs: &Epochs,
) -> Result<[Option<Key>; 4], Error> {
    if epochs.group() != group.id() {
        return Err(Error::EpochUnknown);
    }
    let secret = epochs.secret(epochs.newest()).ok_or(Error::EpochUnknown)?;
    let mut keys = [const { None }; 4];
    for (target, class) in keys.iter_mut().zip(Class::ALL) {
        if group.allows(class) {
            let id = KeyId::new(slot, class, epochs.newest());
            *target = Some(derive::key(group.suite(), secret.expose(), context, id)?);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests;
