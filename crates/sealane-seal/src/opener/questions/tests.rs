//! Many readers that ask one another, without the cryptography: what is asked, heard and answered.

use super::*;
use crate::limits::MAX_SLOT;

fn slot(number: usize) -> Slot {
    Slot::new(number as u16).unwrap()
}

/// The first question of an end.
fn question(number: usize) -> ReaderQuestion {
    ReaderQuestion((number as u64 + 1).to_be_bytes())
}

fn made(counter: u64) -> AnnouncedAt {
    AnnouncedAt { epoch: Epoch(0), start: 1, counter }
}

fn hear(questions: &mut ReaderQuestions, number: usize, counter: u64, asked: ReaderQuestion) {
    let context = SenderContext((number as u64).to_be_bytes());
    questions.hear(slot(number), context, made(counter), Some(asked));
}

/// Ends that have all started at once announce themselves once in each round. Each answers all
/// others after as few announcements as have room for the answers.
#[test]
fn two_hundred_ends_answer_one_another_in_fourteen_announcements() {
    const ENDS: usize = 200;
    let mut ends: Vec<ReaderQuestions> = (0..ENDS).map(|_| ReaderQuestions::default()).collect();
    for (number, end) in ends.iter_mut().enumerate() {
        end.own.push_back((1, question(number)));
    }
    let mut missing = ENDS * (ENDS - 1);
    let mut rounds = 0;
    while missing > 0 {
        rounds += 1;
        assert!(rounds <= 14, "{missing} pairs wait still");
        for from in 0..ENDS {
            let told = ends[from].tell();
            for to in (0..ENDS).filter(|to| *to != from) {
                let is_answer = ends[to].answered_by(&told) != FreshAnswer::Missing;
                missing -= usize::from(is_answer);
                hear(&mut ends[to], from, rounds, told.own.unwrap());
            }
        }
    }
}

/// A recorder plays old announcements of a slot, and a bad member asks as fast as it can.
#[test]
fn one_slot_pushes_no_question_of_another_out() {
    let mut questions = ReaderQuestions::default();
    hear(&mut questions, 1, 500, question(1));
    for counter in 0..400 {
        hear(&mut questions, 1, counter, question(1000 + counter as usize));
        hear(&mut questions, 2, counter, question(2000 + counter as usize));
    }
    hear(&mut questions, 3, 1, question(3));
    assert_eq!(questions.tell().answers, [question(1), question(2399), question(3)]);
    assert!(questions.tell().answers.is_empty(), "each is answered once");
}

#[test]
fn slots_wait_for_their_turn() {
    let mut questions = ReaderQuestions::default();
    let all = usize::from(MAX_SLOT) + 1;
    (0..all).for_each(|number| hear(&mut questions, number, 1, question(number)));
    hear(&mut questions, 0, 2, question(5000));
    let told = (0..all.div_ceil(MAX_ANSWERS)).flat_map(|_| questions.tell().answers);
    let expected = [question(5000)].into_iter().chain((1..all).map(question));
    assert!(told.eq(expected), "in the order in which they asked first");
}
