//! `POST /v1/ticket`: how a page that can set no header shows who it is (spec/access.md).
//!
//! A query ends up in logs and histories, so that a token must not stand there. A ticket may: it is
//! of no use a moment later, nor a second time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use parking_lot::Mutex;
use sealane_codec::DatumWriter;
use sealane_protocol::{AccessTicket, Error};

use crate::access::RequestPass;
use crate::app::NodeApp;
use crate::clock::now_ms;
use crate::limits::{MAX_TICKET_MS, MAX_TICKETS, MAX_TOKEN_TICKETS};
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{ReplyFill, accepted, answer};

/// The random bytes of a ticket.
const TICKET_BYTES: usize = 24;

/// The name of the parameter that brings a ticket.
pub(crate) const PARAMETER: &str = "ticket";

/// Makes a ticket for the sender of the request, which stands for its token once.
pub(crate) async fn make(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        if let Some((name, _)) = query::read(query)?.first() {
            return Err(Error::parameter(name.clone(), "is no parameter of this request").into());
        }
        accepted(&headers)?;
        let ticket = app.tickets.give(pass, Instant::now())?;
        let ticket = AccessTicket { ticket, expires_ms: now_ms() + MAX_TICKET_MS };
        Ok(Box::new(move |writer: &mut DatumWriter<'_>| ticket.write(writer)) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::CREATED, fill)))
}

/// The tickets that were given and not used yet.
#[derive(Default)]
pub(crate) struct GivenTickets(Mutex<HashMap<[u8; 32], GivenTicket>>);

struct GivenTicket {
    pass: RequestPass,
    /// From then on it is worth nothing.
    until: Instant,
}

impl GivenTickets {
    /// A new ticket for whoever has this pass.
    fn give(&self, pass: RequestPass, now: Instant) -> Result<String, HttpRefusal> {
        let mut random = [0; TICKET_BYTES];
        getrandom::fill(&mut random).map_err(|_| HttpRefusal::Crowded)?;
        let text = base64_simd::URL_SAFE_NO_PAD.encode_to_string(random);
        let mut tickets = self.0.lock();
        tickets.retain(|_, ticket| ticket.until > now);
        let own = tickets.values().filter(|ticket| ticket.pass.name() == pass.name()).count();
        // The share of one token keeps a page in a loop from taking those of all others.
        for (count, limit, what) in [
            (own, MAX_TOKEN_TICKETS, "unused tickets of this token"),
            (tickets.len(), MAX_TICKETS, "unused tickets"),
        ] {
            if count >= limit {
                return Err(Error::TooMany { what, limit: limit as u64 }.into());
            }
        }
        let until = now + Duration::from_millis(MAX_TICKET_MS);
        tickets.insert(hash(&text), GivenTicket { pass, until });
        Ok(text)
    }

    /// The pass of a ticket, which is used up by this.
    pub(crate) fn take(&self, text: &str, now: Instant) -> Result<RequestPass, HttpRefusal> {
        let ticket = self.0.lock().remove(&hash(text));
        let ticket = ticket.filter(|ticket| ticket.until > now).ok_or(HttpRefusal::Ticket)?;
        Ok(ticket.pass)
    }
}

/// Tickets are looked up by their hashes, so that the time of a look-up tells nothing about one.
fn hash(text: &str) -> [u8; 32] {
    blake3::derive_key("sealane ticket v1", text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T, HttpRefusal>) -> &'static str {
        result.err().map_or("", |refusal| refusal.info().name)
    }

    #[test]
    fn a_ticket_is_good_once_and_for_a_while() {
        let (tickets, now) = (GivenTickets::default(), Instant::now());
        let later = |ms| now + Duration::from_millis(ms);
        let one = tickets.give(RequestPass::default(), now).unwrap();
        let other = tickets.give(RequestPass::default(), now).unwrap();
        assert_ne!(one, other);
        assert!(tickets.take(&one, later(MAX_TICKET_MS - 1)).is_ok());
        assert_eq!(refused(tickets.take(&one, now)), "TicketSpent");
        assert_eq!(refused(tickets.take(&other, later(MAX_TICKET_MS))), "TicketSpent");
        for wrong in ["", "x", &"x".repeat(9000)] {
            assert_eq!(refused(tickets.take(wrong, now)), "TicketSpent");
        }
    }

    #[test]
    fn unused_tickets_are_bounded_and_go_by_themselves() {
        let (tickets, now) = (GivenTickets::default(), Instant::now());
        for _ in 0..MAX_TOKEN_TICKETS {
            tickets.give(RequestPass::default(), now).unwrap();
        }
        assert_eq!(refused(tickets.give(RequestPass::default(), now)), "TooMany");
        let later = now + Duration::from_millis(MAX_TICKET_MS);
        tickets.give(RequestPass::default(), later).unwrap();
        assert_eq!(tickets.0.lock().len(), 1);
    }
}
