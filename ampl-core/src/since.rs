//! A moment as people write it: a day, or how long ago.

const DAY: u64 = 86_400;

/// Seconds since the Unix epoch of `2026-11-27`, `20261127` (UTC), or of `12h`, `30d`, `8w` before `now`; `None` for
/// anything else.
pub fn seconds(text: &str, now: u64) -> Option<u64> {
    let units = [('h', 3600), ('d', DAY), ('w', 7 * DAY)];
    if let Some((number, unit)) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(*name)?, unit)))
    {
        return Some(now.saturating_sub(number.parse::<u64>().ok()?.checked_mul(*unit)?));
    }
    let digits: String = match text.len() {
        8 => text.to_owned(),
        10 if text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == (at == 4 || at == 7)) => {
            text.replace('-', "")
        }
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *days.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if year < 1970 || !(1..=length).contains(&day) {
        return None;
    }
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let before = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let in_year: u64 = days[..month as usize - 1].iter().sum::<u64>() + day - 1;
    Some((before + in_year) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::utc;

    #[test]
    fn days_and_spans_are_moments_and_nothing_else_is() {
        let now = 1_800_000_000;
        // The day of every moment is the one that its name gives back.
        for day in (0..60_000).step_by(7) {
            let name = utc(day * DAY)[..8].to_owned();
            assert_eq!(seconds(&name, now), Some(day * DAY), "{name}");
            let dashed = format!("{}-{}-{}", &name[..4], &name[4..6], &name[6..]);
            assert_eq!(seconds(&dashed, now), Some(day * DAY), "{dashed}");
        }
        assert_eq!(seconds("12h", now), Some(now - 12 * 3600));
        assert_eq!(seconds("8w", now), Some(now - 56 * DAY));
        for text in [
            "",
            "d",
            "-1d",
            "1.5d",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026/01/01",
            "yesterday",
            "1969-12-31",
            "202611270",
            "99999999999999999999d",
            "2026-1-001",
        ] {
            assert_eq!(seconds(text, now), None, "{text}");
        }
    }
}
