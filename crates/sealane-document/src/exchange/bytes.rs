use sealane_seal::Slot;

use crate::ExchangeError;

/// The fields of a message, from its front.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// What stands behind the sort of a message, which is that one.
    pub(super) fn of(message: &'a [u8], sort: u8) -> Result<Self, ExchangeError> {
        match message.split_first() {
            Some((first, rest)) if *first == sort => Ok(Input(rest)),
            Some(_) => Err(ExchangeError::Unknown),
            None => Err(ExchangeError::Length),
        }
    }

    /// The fields of a part of a message.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All that follows.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ExchangeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ExchangeError::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ExchangeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ExchangeError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn slot(&mut self) -> Result<Slot, ExchangeError> {
        Slot::new(u16::from_le_bytes(self.array()?)).ok_or(ExchangeError::Order)
    }

    /// LEB128 in its shortest form.
    pub(super) fn leb128(&mut self) -> Result<u64, ExchangeError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if number >> shift != bits {
                return Err(ExchangeError::Order);
            }
            if byte & 0x80 == 0 {
                let shortest = byte != 0 || shift == 0;
                return if shortest { Ok(number) } else { Err(ExchangeError::Order) };
            }
        }
        Err(ExchangeError::Order)
    }
}

/// Appends a number as LEB128 in its shortest form.
pub(super) fn leb128(mut number: u64, out: &mut Vec<u8>) {
    loop {
        // Seven bits fit.
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}
