//! Hours, days, weeks, months and years of the Gregorian calendar, in UTC.

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarPeriod {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A day of the calendar.
struct CalendarDate {
    year: i64,
    /// 1 to 12.
    month: i64,
    /// 1 to 31.
    day: i64,
}

const HOUR_NS: i64 = 3600 * 1_000_000_000;

impl CalendarPeriod {
    /// The number of the period that holds a time. Periods that follow each other have numbers that
    /// do.
    pub(super) fn of(self, time_ns: i64) -> i64 {
        let hour = time_ns.div_euclid(HOUR_NS);
        let day = hour.div_euclid(24);
        match self {
            CalendarPeriod::Hour => hour,
            CalendarPeriod::Day => day,
            // 1970-01-01 was a Thursday.
            CalendarPeriod::Week => (day + 3).div_euclid(7),
            CalendarPeriod::Month => {
                let date = date(day);
                date.year * 12 + date.month - 1
            }
            CalendarPeriod::Year => date(day).year,
        }
    }

    /// The period of this number, for people.
    pub(super) fn shown(self, number: i64) -> String {
        match self {
            CalendarPeriod::Hour => {
                let (day, hour) = (number.div_euclid(24), number.rem_euclid(24));
                format!("hour {}T{hour:02}", written(day))
            }
            CalendarPeriod::Day => format!("day {}", written(number)),
            CalendarPeriod::Week => format!("week of {}", written(number * 7 - 3)),
            CalendarPeriod::Month => {
                format!("month {:04}-{:02}", number.div_euclid(12), number.rem_euclid(12) + 1)
            }
            CalendarPeriod::Year => format!("year {number:04}"),
        }
    }

    /// Why a snapshot is not kept that comes behind so many periods.
    pub(super) fn beyond(self, count: usize) -> String {
        let unit = match self {
            CalendarPeriod::Hour => "hours",
            CalendarPeriod::Day => "days",
            CalendarPeriod::Week => "weeks",
            CalendarPeriod::Month => "months",
            CalendarPeriod::Year => "years",
        };
        format!("behind the {count} {unit} that are kept")
    }
}

fn written(day: i64) -> String {
    let CalendarDate { year, month, day } = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date of a day that is counted from 1970-01-01. The year begins in March here, so that the
/// day that may be missing is its last (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`).
fn date(day: i64) -> CalendarDate {
    const ERA: i64 = 146_097;
    let shifted = day + 719_468;
    let (era, day) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    CalendarDate { year, month, day }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 24 * HOUR_NS;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let mut day = -719_162;
        for year in 1..2500_i64 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                for of_month in 1..=length {
                    let found = date(day);
                    assert_eq!((found.year, found.month, found.day), (year, month, of_month));
                    day += 1;
                }
            }
        }
        assert_eq!(written(0), "1970-01-01");
    }

    #[test]
    fn periods_end_where_the_calendars_do() {
        // 2024-02-29T23:59:59.999999999Z, a Thursday, and the nanosecond behind it.
        let end = 19_783 * DAY_NS - 1;
        for (period, before, behind) in [
            (CalendarPeriod::Hour, "hour 2024-02-29T23", "hour 2024-03-01T00"),
            (CalendarPeriod::Day, "day 2024-02-29", "day 2024-03-01"),
            (CalendarPeriod::Month, "month 2024-02", "month 2024-03"),
            (CalendarPeriod::Week, "week of 2024-02-26", "week of 2024-02-26"),
            (CalendarPeriod::Year, "year 2024", "year 2024"),
        ] {
            assert_eq!(period.shown(period.of(end)), before);
            assert_eq!(period.shown(period.of(end + 1)), behind);
        }
        // 1969-12-31 was a Wednesday; times before 1970 count, too.
        assert_eq!(CalendarPeriod::Year.shown(CalendarPeriod::Year.of(-1)), "year 1969");
        assert_eq!(CalendarPeriod::Week.shown(CalendarPeriod::Week.of(-1)), "week of 1969-12-29");
        assert_eq!(CalendarPeriod::Month.shown(CalendarPeriod::Month.of(-1)), "month 1969-12");
        // The ends of what 64 bits of nanoseconds reach.
        assert_eq!(CalendarPeriod::Day.shown(CalendarPeriod::Day.of(i64::MIN)), "day 1677-09-21");
        assert_eq!(CalendarPeriod::Day.shown(CalendarPeriod::Day.of(i64::MAX)), "day 2262-04-11");
    }
}
