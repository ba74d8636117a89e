use super::*;
use crate::InterfaceId;

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn via(number: u16) -> LinkId {
    LinkId { interface: InterfaceId(0), slot: slot(number) }
}

fn pair(of: u16) -> GatewayPair {
    GatewayPair { gateway: slot(0), of: slot(of) }
}

const ONE: VanishProof = VanishProof { reports: 1, frames: 8 };

/// A gateway and a machine that sends to it.
struct ReportPair {
    gateway: GatewayReports,
    sender: GatewayReports,
    needed: u8,
}

impl Default for ReportPair {
    fn default() -> Self {
        Self { gateway: GatewayReports::default(), sender: GatewayReports::default(), needed: 1 }
    }
}

impl ReportPair {
    /// So many frames are sent, so many come, and a report is told. Who is blamed?
    fn round(&mut self, sent: u32, came: u32) -> Vec<LinkId> {
        (0..sent).for_each(|_| self.sender.carried(pair(7), via(1), 1));
        (0..came).for_each(|_| self.gateway.came(slot(7), 1));
        let report = self.gateway.next(5);
        self.hear(&report)
    }

    fn hear(&mut self, report: &GatewayReport) -> Vec<LinkId> {
        let needed = VanishProof { reports: self.needed, frames: 8 };
        let fates = self.sender.hear(slot(0), report, |_| needed);
        assert_eq!(self.sender.hear(slot(0), report, |_| needed), [], "a report counts once");
        let vanish = fates.into_iter().filter(|(_, fate)| *fate == FrameFate::Vanish);
        vanish.map(|(via, _)| via).collect()
    }
}

#[test]
fn a_next_hop_behind_which_all_vanishes_is_found_with_the_third_report_at_the_latest() {
    for each in [4, 20] {
        let mut two = ReportPair::default();
        (0..3).for_each(|_| assert_eq!(two.round(each, each), []));
        // The machine was taken in the middle.
        assert_eq!(two.round(each, each / 2), []);
        let blamed = [two.round(each, 0), two.round(each, 0), two.round(each, 0)];
        let first = blamed.iter().position(|blamed| *blamed == [via(1)]);
        assert!(first.is_some_and(|at| at <= 2), "{each}: {blamed:?}");
        assert_eq!(blamed.iter().filter(|blamed| !blamed.is_empty()).count(), 1, "once");
    }
}

#[test]
fn a_next_hop_far_from_the_gateway_has_the_time_of_one_more_report() {
    let mut two = ReportPair { needed: 2, ..ReportPair::default() };
    two.round(8, 8);
    let blamed = [two.round(8, 0), two.round(8, 0), two.round(8, 0)];
    assert_eq!(blamed, [vec![], vec![], vec![via(1)]]);
    // Somebody behind it has left the hole meanwhile.
    two.round(8, 8);
    assert_eq!([two.round(8, 0), two.round(8, 0)], [vec![], vec![]]);
    assert_eq!(two.round(8, 6), []);
    assert_eq!([two.round(8, 0), two.round(8, 0)], [vec![], vec![]]);
}

#[test]
fn a_trickle_that_arrives_blames_nobody_and_one_that_vanishes_does() {
    let mut two = ReportPair::default();
    for round in 0..200 {
        // One frame in each second report, as a machine sends that is at rest.
        let sent = round % 2;
        assert_eq!(two.round(sent, sent), [], "{round}");
    }
    let blamed = (0..20).map(|_| two.round(1, 0)).position(|blamed| !blamed.is_empty());
    assert!(blamed.is_some_and(|rounds| (7..=9).contains(&rounds)), "{blamed:?}");
}

#[test]
fn frames_that_are_still_on_their_way_blame_nobody() {
    let mut two = ReportPair::default();
    two.round(4, 4);
    for round in 0..20 {
        // A frame that is sent just before a report is counted in the next one.
        assert_eq!(two.round(20, 0), [], "{round}");
        assert_eq!(two.round(0, 20), [], "{round}");
        assert_eq!(two.round(0, 0), [], "{round}");
    }
}

#[test]
fn heavy_loss_and_lost_reports_blame_nobody() {
    let mut two = ReportPair::default();
    for round in 0..40 {
        assert_eq!(two.round(24, 4), [], "{round}");
        // Reports that are lost: what they counted stands in those after them.
        for _ in 0..round % 6 {
            (0..24).for_each(|_| two.sender.carried(pair(7), via(1), 1));
            (0..24).for_each(|_| two.gateway.came(slot(7), 1));
            two.gateway.next(5);
        }
        // One that comes after frames ended tells of them still.
        two.gateway.next(5);
    }
}

#[test]
fn frames_that_came_by_several_reports_speak_together() {
    let mut two = ReportPair::default();
    two.round(20, 20);
    // Three of sixteen that have had their time are more than one of eight; one alone is not.
    assert_eq!(two.round(16, 2), []);
    assert_eq!(two.round(16, 1), []);
    // Two of sixteen are not.
    let mut two = ReportPair::default();
    two.round(20, 20);
    assert_eq!(two.round(16, 1), []);
    assert_eq!(two.round(16, 1), [via(1)]);
}

#[test]
fn what_came_while_more_reports_were_lost_than_it_stands_in_is_not_taken_for_lost() {
    let mut two = ReportPair::default();
    two.round(20, 20);
    // These are on their way when the report is made, and come behind it.
    assert_eq!(two.round(8, 0), []);
    (0..8).for_each(|_| two.gateway.came(slot(7), 1));
    (0..REPEATED).for_each(|_| drop(two.gateway.next(5)));
    let next = two.gateway.next(5);
    assert!(next.is_complete && next.counts.is_empty(), "they stood in those that are lost");
    assert_eq!(two.hear(&next), []);
    // Of those that were lost no more than what they stand in, the next one tells all.
    two.round(20, 20);
    assert_eq!(two.round(8, 0), []);
    (1..REPEATED).for_each(|_| drop(two.gateway.next(5)));
    let next = two.gateway.next(5);
    assert!(next.is_complete && next.counts.is_empty());
    assert_eq!(two.hear(&next), [via(1)]);
}

#[test]
fn a_report_that_leaves_some_out_says_nothing_of_them() {
    let mut two = ReportPair::default();
    two.round(20, 20);
    for sequence in 100..120 {
        (0..20).for_each(|_| two.sender.carried(pair(7), via(1), 1));
        let cut = GatewayReport { is_complete: false, start: 5, sequence, counts: vec![] };
        assert_eq!(two.hear(&cut), []);
    }
}

#[test]
fn frames_that_arrive_speak_for_their_next_hop() {
    let (mut gateway, mut sender) = (GatewayReports::default(), GatewayReports::default());
    let mut fates = vec![];
    for came in [20, 20, 0, 0, 0, 20] {
        (0..20).for_each(|_| sender.carried(pair(7), via(1), 1));
        (0..came).for_each(|_| gateway.came(slot(7), 1));
        fates.extend(
            sender.hear(slot(0), &gateway.next(5), |_| ONE).into_iter().map(|(_, fate)| fate),
        );
    }
    assert_eq!(fates, [FrameFate::Arrive, FrameFate::Vanish, FrameFate::Arrive]);
}

#[test]
fn a_report_counts_those_first_who_sent_most_and_tells_each_four_times() {
    let mut gateway = GatewayReports::default();
    assert!(gateway.is_quiet());
    for number in 0..40_u16 {
        (0..=number).for_each(|_| gateway.came(slot(number), 1));
    }
    let first = gateway.next(1);
    assert_eq!((first.is_complete, first.counts.len()), (false, MAX_REPORTED));
    assert_eq!(first.counts[0], (slot(39), 40));
    let second = gateway.next(1);
    assert_eq!(second.counts[0], (slot(7), 8), "those who were left out");
    gateway.came(slot(3), 1);
    let rest: Vec<_> = (0..4).map(|_| gateway.next(1)).collect();
    assert!(rest.iter().all(|report| report.counts.contains(&(slot(3), 5))));
    assert!(!gateway.is_quiet());
    assert_eq!(gateway.next(1).counts, []);
    (0..8).for_each(|_| assert!(gateway.next(1).is_complete));
    assert!(gateway.is_quiet());
}

#[test]
fn pairs_are_bounded_and_idle_ones_are_forgotten() {
    let mut reports = GatewayReports::default();
    for of in 0..1024 {
        reports.carried(pair(of), via(1), 1);
    }
    assert_eq!(reports.carried.len(), MAX_CARRIED_COUNTS);
    assert!(reports.awaits(slot(0)) && !reports.awaits(slot(1)));
    let mut gateway = GatewayReports::default();
    (0..10).for_each(|_| drop(reports.hear(slot(0), &gateway.next(1), |_| ONE)));
    assert!(reports.carried.is_empty() && reports.heard.is_empty());
}
