//! NTP timestamps as text.

/// Seconds from the NTP era 0 (1900) to the Unix epoch (RFC 5905, figure 4).
const NTP_TO_UNIX: i64 = 2_208_988_800;
/// Seconds of an NTP era.
const ERA: i64 = 1 << 32;
const DAY: i64 = 86_400;

/// Returns an NTP timestamp of 32.32 bits as UTC, for example `2026-01-31 12:00:00.250000 UTC`. The era is not part of
/// a timestamp: the result is between 1968 and 2104 (RFC 4330, section 3).
pub(super) fn utc(ntp: u64) -> String {
    let seconds = i64::try_from(ntp >> 32).unwrap_or(0);
    let era = if seconds < ERA / 2 { ERA } else { 0 };
    let unix = seconds + era - NTP_TO_UNIX;
    let micros = ((ntp & 0xffff_ffff) * 1_000_000) >> 32;
    let (year, month, day) = date(unix.div_euclid(DAY));
    let second = unix.rem_euclid(DAY);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{micros:06} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Returns year, month and day of the day `days` after 1970-01-01, in the Gregorian calendar.
fn date(days: i64) -> (i64, i64, i64) {
    // A year from March to February has its leap day at the end. An era of the calendar has 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::WallTime;

    #[test]
    fn a_timestamp_is_a_date() {
        let of = |seconds: i64, nanos: i64| utc(WallTime(seconds * 1_000_000_000 + nanos).to_ntp());
        assert_eq!(of(0, 0), "1970-01-01 00:00:00.000000 UTC");
        assert_eq!(of(951_782_400, 0), "2000-02-29 00:00:00.000000 UTC");
        assert_eq!(of(1_700_000_000, 250_000_000), "2023-11-14 22:13:20.250000 UTC");
        assert_eq!(of(2_085_978_496, 0), "2036-02-07 06:28:16.000000 UTC", "the begin of the next era");
        assert_eq!(of(2_209_032_000, 0), "2040-01-01 12:00:00.000000 UTC");
    }
}
