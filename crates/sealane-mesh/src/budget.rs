//! The air time that a machine may use on an interface, measured at its own radio.

use crate::config::ALWAYS_PPM;
use crate::{MeshMedium, MeshSpan, MeshTime, UnitReceiver};

/// In which share of the air time something is sent, and in which order a driver sends what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SendUrgency {
    /// Hellos, routes and probes.
    Control,
    /// Data of urgent types.
    Urgent,
    /// Other data.
    Normal,
    /// Announcements of senders.
    Low,
}

impl SendUrgency {
    /// All, the first first.
    pub const ALL: [SendUrgency; 4] =
        [SendUrgency::Control, SendUrgency::Urgent, SendUrgency::Normal, SendUrgency::Low];

    /// The share of the duty cycle, in percent.
    const fn percent(self) -> u32 {
        match self {
            SendUrgency::Control => 40,
            SendUrgency::Urgent => 30,
            SendUrgency::Normal => 20,
            SendUrgency::Low => 10,
        }
    }

    /// The share of the channel where there is no duty cycle, in millionths: for what is sent
    /// again and again, or to everybody.
    const fn share_ppm(self) -> u32 {
        match self {
            SendUrgency::Control => 50_000,
            SendUrgency::Urgent | SendUrgency::Normal => 100_000,
            SendUrgency::Low => 10_000,
        }
    }
}

/// How much a busy channel is spared: 16 is not at all, 128 is eight times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChannelPressure(u32);

impl ChannelPressure {
    const NONE: ChannelPressure = ChannelPressure(16);
    const MOST: u32 = 128;

    /// Up to a load nothing is spared; then as much more as the load is more than that.
    fn of(busy_ppm: u32, free_ppm: u32) -> Self {
        Self((busy_ppm.saturating_mul(16) / free_ppm.max(1)).clamp(Self::NONE.0, Self::MOST))
    }

    /// A pause that is so much longer.
    pub(crate) fn stretch(self, pause: MeshSpan) -> MeshSpan {
        pause.times(self.0.into()).part(Self::NONE.0.into())
    }

    /// The rest of savings when the channel has become so much busier than before.
    fn spare_since(self, before: ChannelPressure, held: u64) -> u64 {
        let now = self.0.max(before.0);
        (u128::from(held) * u128::from(before.0) / u128::from(now)) as u64
    }

    /// A rate that is so much less.
    fn spare(self, rate: u64) -> u64 {
        rate * u64::from(Self::NONE.0) / u64::from(self.0)
    }
}

/// Air time that grows at a rate, up to a bound.
#[derive(Debug, Clone, Copy)]
struct AirTimeBucket {
    rate_ppm: u32,
    /// In millionths of microseconds, as its bound.
    held: u64,
    bound: u64,
}

/// The air time of one interface.
#[derive(Debug)]
pub(crate) struct AirTimeBudget {
    medium: MeshMedium,
    buckets: [AirTimeBucket; 4],
    at: MeshTime,
    /// The air time sent in each of the last 61 minutes, where there is a duty cycle.
    minutes: Vec<MeshSpan>,
    minute: u64,
    spent: [MeshSpan; 4],
    press: ChannelPressure,
    /// The most that the channel was spared since it was last as good as free.
    peak: ChannelPressure,
}

/// Minutes that an hour can touch.
const MINUTES: u64 = 61;
const MINUTE: MeshSpan = MeshSpan::seconds(60);
const HOUR: MeshSpan = MeshSpan::seconds(3600);
/// The bytes of the longest message of control.
const LONGEST_BYTES: usize = 200;
/// Up to this load of the channel nothing is spared: where radios are fast and listen first, and
/// where there is a duty cycle.
const FREE_PPM: u32 = 400_000;
const FREE_SLOW_PPM: u32 = 100_000;
/// How much may be saved up.
const SAVED: MeshSpan = MeshSpan::seconds(30);

impl AirTimeBudget {
    pub(crate) fn new(medium: MeshMedium, now: MeshTime) -> Self {
        // A narrow interface has to save up for all parts of an announcement, the longest message.
        let parts = LONGEST_BYTES.div_ceil(medium.mtu.max(1)) as u64;
        let longest = scaled(medium.air(medium.mtu).times(parts));
        let bucket = |urgency: SendUrgency| {
            let rate_ppm = match medium.has_duty() {
                true => medium.duty_ppm / 100 * urgency.percent(),
                false => urgency.share_ppm(),
            };
            let bound = (SAVED.0 * u64::from(rate_ppm)).max(2 * longest);
            AirTimeBucket { rate_ppm: rate_ppm.max(1), held: longest, bound }
        };
        let minutes = if medium.has_duty() { MINUTES as usize } else { 0 };
        Self {
            medium,
            buckets: SendUrgency::ALL.map(bucket),
            at: now,
            minutes: vec![MeshSpan(0); minutes],
            minute: now.0 / MINUTE.0,
            spent: [MeshSpan(0); 4],
            press: ChannelPressure::NONE,
            peak: ChannelPressure::NONE,
        }
    }

    /// Whether it is the air time of such a medium.
    pub(crate) fn is_of(&self, medium: &MeshMedium) -> bool {
        self.medium == *medium
    }

    /// Takes how busy the channel is. Where radios are fast and listen before they send, a channel
    /// is full at twice what it carries well; where they are slow, most collide much sooner with
    /// those whom they do not hear.
    pub(crate) fn press_by(&mut self, now: MeshTime, busy_ppm: u32) {
        self.go_on(now);
        let free_ppm = if self.medium.has_duty() { FREE_SLOW_PPM } else { FREE_PPM };
        self.press = ChannelPressure::of(busy_ppm, free_ppm);
        if busy_ppm < free_ppm / 2 {
            self.peak = ChannelPressure::NONE;
        }
        // The savings of all machines, made while the channel was free, would fill it when it no
        // longer is.
        for urgency in [SendUrgency::Normal, SendUrgency::Low] {
            if let Some(bucket) = self.buckets.get_mut(urgency as usize) {
                bucket.held = self.press.spare_since(self.peak, bucket.held);
            }
        }
        self.peak = self.peak.max(self.press);
    }

    /// How much the channel is spared.
    pub(crate) fn press(&self) -> ChannelPressure {
        self.press
    }

    /// How fast a share grows. What is urgent is not spared: it has a bound of its own. Hellos come
    /// less often instead, so that there is always air time for probes.
    fn rate(&self, urgency: SendUrgency) -> u64 {
        let rate = self.buckets.get(urgency as usize).map_or(1, |bucket| bucket.rate_ppm);
        match urgency {
            SendUrgency::Control | SendUrgency::Urgent => rate.into(),
            SendUrgency::Normal | SendUrgency::Low => self.press.spare(rate.into()).max(1),
        }
    }

    /// The air time that was spent so far, by urgency.
    pub(crate) fn spent(&self) -> [MeshSpan; 4] {
        self.spent
    }

    /// Whether there is air time for a unit. Data for one neighbour is limited by a duty cycle
    /// alone.
    pub(crate) fn may(
        &mut self,
        now: MeshTime,
        urgency: SendUrgency,
        to: UnitReceiver,
        air: MeshSpan,
    ) -> bool {
        self.go_on(now);
        let held = self.buckets.get(urgency as usize).map_or(0, |bucket| bucket.held);
        self.is_free(urgency, to) || held >= scaled(air) && self.has_hour(air)
    }

    /// Spends the air time of a unit.
    pub(crate) fn spend(
        &mut self,
        now: MeshTime,
        urgency: SendUrgency,
        to: UnitReceiver,
        air: MeshSpan,
    ) {
        self.go_on(now);
        if !self.is_free(urgency, to)
            && let Some(bucket) = self.buckets.get_mut(urgency as usize)
        {
            bucket.held = bucket.held.saturating_sub(scaled(air));
        }
        if let Some(spent) = self.spent.get_mut(urgency as usize) {
            *spent = *spent + air;
        }
        if let Some(spent) = self.minutes.get_mut((self.minute % MINUTES) as usize) {
            *spent = *spent + air;
        }
    }

    /// Whether what is sent so is limited by no account.
    pub(crate) fn is_free(&self, urgency: SendUrgency, to: UnitReceiver) -> bool {
        urgency != SendUrgency::Control && to != UnitReceiver::Everybody && !self.medium.has_duty()
    }

    /// Whether so much can be saved up at all.
    pub(crate) fn fits(&self, urgency: SendUrgency, air: MeshSpan) -> bool {
        self.buckets.get(urgency as usize).is_some_and(|bucket| bucket.bound >= scaled(air))
    }

    /// When there is enough, if nothing else is spent until then.
    pub(crate) fn ready(&self, now: MeshTime, urgency: SendUrgency, air: MeshSpan) -> MeshTime {
        let Some(bucket) = self.buckets.get(urgency as usize) else { return now };
        let rate = self.rate(urgency);
        let grown = bucket.held.saturating_add(now.since(self.at).0.saturating_mul(rate));
        let lacks = scaled(air).saturating_sub(grown.min(bucket.bound));
        let wait = MeshSpan(lacks.div_ceil(rate));
        let minute_left = MeshSpan(MINUTE.0 - now.0 % MINUTE.0);
        now + if self.has_hour(air) { wait } else { MeshSpan(wait.0.max(minute_left.0)) }
    }

    /// How long it takes until that much is saved up again.
    pub(crate) fn paced(&self, urgency: SendUrgency, air: MeshSpan) -> MeshSpan {
        let rate = self.buckets.get(urgency as usize).map_or(1, |bucket| bucket.rate_ppm);
        MeshSpan(scaled(air) / u64::from(rate.max(1)))
    }

    fn go_on(&mut self, now: MeshTime) {
        let passed = now.since(self.at);
        self.at = self.at.max(now);
        let rates = SendUrgency::ALL.map(|urgency| self.rate(urgency));
        for (bucket, rate) in self.buckets.iter_mut().zip(rates) {
            let grown = passed.0.saturating_mul(rate);
            bucket.held = bucket.held.saturating_add(grown).min(bucket.bound);
        }
        let minute = now.0 / MINUTE.0;
        let new = minute.saturating_sub(self.minute).min(MINUTES);
        for past in 0..new {
            let index = (minute - past) % MINUTES;
            if let Some(spent) = self.minutes.get_mut(index as usize) {
                *spent = MeshSpan(0);
            }
        }
        self.minute = self.minute.max(minute);
    }

    /// Whether an hour of the duty cycle has that much left.
    fn has_hour(&self, air: MeshSpan) -> bool {
        let spent: u64 = self.minutes.iter().map(|spent| spent.0).sum();
        let whole = HOUR.0 / u64::from(ALWAYS_PPM) * u64::from(self.medium.duty_ppm);
        !self.medium.has_duty() || spent + air.0 <= whole
    }
}

/// Air time in the unit of buckets.
fn scaled(air: MeshSpan) -> u64 {
    air.0.saturating_mul(u64::from(ALWAYS_PPM))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl AirTimeBudget {
        fn try_spend(&mut self, now: MeshTime, urgency: SendUrgency, air: MeshSpan) -> bool {
            let may = self.may(now, urgency, UnitReceiver::Everybody, air);
            if may {
                self.spend(now, urgency, UnitReceiver::Everybody, air);
            }
            may
        }
    }

    #[test]
    fn no_hour_has_more_than_the_duty_cycle_however_one_tries() {
        let medium = MeshMedium::lora_sf7();
        let air = medium.air(200);
        for step in [MeshSpan::millis(7), MeshSpan::seconds(1), MeshSpan::seconds(59)] {
            let mut budget = AirTimeBudget::new(medium, MeshTime(0));
            let (mut now, mut sent) = (MeshTime(0), Vec::new());
            while now < MeshTime(0) + HOUR.times(3) {
                for urgency in SendUrgency::ALL {
                    if budget.try_spend(now, urgency, air) {
                        sent.push(now);
                    }
                }
                now = now + MeshSpan(step.0.max(MINUTE.0 / 600));
            }
            for from in &sent {
                let within = sent.iter().filter(|at| *at >= from && at.since(*from) < HOUR);
                let total = air.times(within.count() as u64);
                assert!(total.0 <= 36_000_000, "{total:?} from {from:?}");
            }
            assert!(sent.len() as u64 * air.0 > 36_000_000, "it uses what it has");
        }
    }

    #[test]
    fn each_share_is_kept_from_the_others() {
        let mut budget = AirTimeBudget::new(MeshMedium::dot11p(), MeshTime(0));
        let air = MeshMedium::dot11p().air(300);
        let mut at = |now: MeshTime| {
            let mut count = 0;
            while budget.try_spend(now, SendUrgency::Normal, air) {
                count += 1;
            }
            (count, budget.try_spend(now, SendUrgency::Urgent, air))
        };
        let (first, urgent) = at(MeshTime(0));
        assert!(first > 0 && urgent);
        let (later, urgent) = at(MeshTime(1_000_000));
        assert!((150..=170).contains(&later), "a tenth of a second: {later}");
        assert!(urgent);
    }

    #[test]
    fn a_narrow_radio_has_air_time_for_all_parts_of_a_long_message() {
        let medium = MeshMedium { mtu: 51, ..MeshMedium::lora_sf7() };
        let mut budget = AirTimeBudget::new(medium, MeshTime(0));
        let parts = medium.air(51).times(4);
        assert!(budget.try_spend(MeshTime(0) + MINUTE, SendUrgency::Control, parts));
    }

    #[test]
    fn a_busy_channel_is_spared_but_for_what_is_urgent() {
        let medium = MeshMedium::dot11p();
        let count = |busy_ppm: u32, urgency: SendUrgency| {
            let mut budget = AirTimeBudget::new(medium, MeshTime(0));
            let air = medium.air(300);
            while budget.try_spend(MeshTime(0), urgency, air) {}
            budget.press_by(MeshTime(0), busy_ppm);
            let later = MeshTime(0) + MeshSpan::seconds(20);
            (0..).take_while(|_| budget.try_spend(later, urgency, air)).count()
        };
        for urgency in [SendUrgency::Normal, SendUrgency::Low] {
            let free = count(0, urgency);
            assert_eq!(count(400_000, urgency), free);
            assert!(count(800_000, urgency).abs_diff(free / 2) <= 1, "{free}");
        }
        assert_eq!(count(1_000_000, SendUrgency::Urgent), count(0, SendUrgency::Urgent));
        let mut lora = AirTimeBudget::new(MeshMedium::lora_sf7(), MeshTime(0));
        lora.press_by(MeshTime(0), 400_000);
        assert_eq!(lora.press().stretch(MeshSpan::seconds(60)), MeshSpan::seconds(240));
        lora.press_by(MeshTime(0), 1_000_000);
        assert_eq!(lora.press().stretch(MeshSpan::seconds(60)), MeshSpan::seconds(480));
    }

    #[test]
    fn what_was_saved_up_is_not_spent_at_once_when_the_channel_gets_busy() {
        let medium = MeshMedium::lora_sf7();
        let air = medium.air(77);
        let count = |busy_ppm: [u32; 3], urgency: SendUrgency| {
            let mut budget = AirTimeBudget::new(medium, MeshTime(0));
            let later = MeshTime(0) + MeshSpan::seconds(600);
            busy_ppm.iter().for_each(|busy| budget.press_by(later, *busy));
            (0..).take_while(|_| budget.try_spend(later, urgency, air)).count()
        };
        assert_eq!(count([0, 0, 0], SendUrgency::Normal), 5);
        assert_eq!(count([0, 0, 400_000], SendUrgency::Normal), 1, "a fourth of it");
        assert_eq!(count([400_000, 200_000, 400_000], SendUrgency::Normal), 1, "and once");
        assert_eq!(count([0, 0, 400_000], SendUrgency::Urgent), 5, "what is urgent is not spared");
    }

    #[test]
    fn what_is_said_to_be_ready_then_is() {
        let medium = MeshMedium::lora_sf7();
        let (mut budget, mut now) = (AirTimeBudget::new(medium, MeshTime(0)), MeshTime(0));
        let air = medium.air(200);
        for _ in 0..200 {
            let ready = budget.ready(now, SendUrgency::Normal, air);
            assert!(ready >= now);
            now = ready;
            if budget.try_spend(now, SendUrgency::Normal, air) {
                continue;
            }
            assert!(!budget.has_hour(air), "only a used up hour makes it wait longer");
        }
        assert!(now > MeshTime(0) + HOUR);
    }
}
