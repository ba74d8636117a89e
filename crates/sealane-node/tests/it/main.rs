//! The hub's promises (spec/hub.md), each in a file of its own, over real sockets.

mod console;
mod dead_letters;
mod delivers_exactly;
mod ends_by_the_protocol;
mod enqueues_once;
mod guards;
mod http;
mod keeps_to_itself;
mod limits_hold;
mod lists_what_is_granted;
mod means_one_thing;
mod names_damage;
mod negotiates;
mod operates;
mod redelivers;
mod resumes;
mod retains;
mod running;
mod seals;
mod sends_events;
mod shares_encodings;
mod socket;
mod stays_fair;
mod stock_clients;
mod strict_order;
mod tells_the_form;
