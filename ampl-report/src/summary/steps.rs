//! Time steps that windows follow, or the reason why they follow none.

use ampl_analysis::followed_steps::{Following, NotFollowed, followed};
use ampl_core::plan::Plan;
use ampl_reader::{Symbols, Trace};

use crate::human::{count, cut, plural};
use crate::layout::{Page, field};

/// Writes what windows follow with `window.marker = "auto"`.
pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>) {
    match plan.and_then(|plan| followed(trace, plan)) {
        Some(Ok(following)) => field(out, "time steps", &sentence(&following)),
        Some(Err(why)) => field(out, "time steps", &format!("{}: windows last 250 ms", reason(why))),
        None => {}
    }
}

fn sentence(following: &Following<'_>) -> String {
    let steps = following.steps;
    let place = match steps.module.is_empty() {
        true => String::new(),
        false => format!(" at {}", Symbols::default().name(&steps.module, steps.offset)),
    };
    let others = match following.calls.len() {
        0 | 1 => String::new(),
        calls => format!(" and {} of the same steps", plural(calls as u64 - 1, "other call")),
    };
    let per_step = steps.per_step.max(1);
    let every = match steps.every / per_step {
        0 | 1 => "every step".to_owned(),
        many => format!("every {} steps", count(many)),
    };
    let every = match per_step {
        1 => every,
        visits => format!("{every} of {} calls", count(visits)),
    };
    let before = match following.replaces {
        None => "those before last 250 ms".to_owned(),
        Some(window) => format!(
            "those before last 250 ms, and from window {} on follow a loop inside of them, or one that was over",
            count(window)
        ),
    };
    let mut text = format!(
        "windows follow {}{place}{others}, {every}, from window {} on; {before}",
        steps.function,
        count(steps.window)
    );
    if !following.late.is_empty() {
        let ranks = plural(following.late.len(), "rank");
        text += &format!(
            "; {ranks} ({}) followed late, all do from window {} on",
            cut(&following.late.to_string(), 20),
            count(following.from)
        );
    }
    if let Some(window) = following.left {
        text +=
            &format!("; window {} lasts on, as other steps were found then and did not begin", count(window));
    }
    if let Some(window) = following.until {
        text += &format!("; by the clock again from window {} on, as no step came", count(window));
    }
    if !following.without.is_empty() {
        let ranks = plural(following.without.len(), "rank");
        text += &format!("; {ranks} ({}) did not", cut(&following.without.to_string(), 20));
    }
    text
}

fn reason(why: NotFollowed) -> String {
    match why {
        NotFollowed::NotRecorded => "not searched for, as not all calls are recorded".into(),
        NotFollowed::EndedBefore => "the run ended before windows could follow them".into(),
        NotFollowed::LoopEnded => "the loop that was found ended before windows could follow it".into(),
        NotFollowed::NoLoop => "none found, as the calls of no rank repeat as a loop over time".into(),
        NotFollowed::SomeWithout(named) => {
            format!("found on {} of {} only", count(named.naming), plural(named.reported, "rank"))
        }
        NotFollowed::Disagreement(named) => format!(
            "no call is made equally often in each step on all ranks, but one on {} of {}",
            count(named.agreeing),
            plural(named.reported, "rank")
        ),
    }
}

#[cfg(test)]
mod tests {
    use ampl_reader::model::{FollowedSteps, Level, Step, UnannouncedSteps};
    use ampl_testkit::synthetic::Synthetic;

    use super::*;

    fn line(trace: &Trace, plan: &Plan) -> String {
        let mut page = Page::new(100);
        write(&mut page, trace, Some(plan));
        page.into_text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_line_has_the_call_and_the_window_or_the_reason() {
        let job = Synthetic { config: "[window]\nmarker = 'auto'\n".into(), ..Synthetic::default() };
        let (mut trace, plan) = (job.trace(), job.plan());
        let before = "time steps the run ended before windows could follow them: windows last 250 ms";
        assert_eq!(line(&trace, &plan), before);
        for (naming, agreeing, expected) in [
            (0, 0, "none found, as the calls of no rank repeat as a loop over time"),
            (3, 3, "found on 3 of 8 ranks only"),
            (8, 5, "no call is made equally often in each step on all ranks, but one on 5 of 8 ranks"),
            (8, 8, "the run ended before windows could follow them"),
        ] {
            trace.ranks[2].process.unannounced =
                Some(Box::new(UnannouncedSteps { reported: 8, naming, agreeing }));
            assert_eq!(line(&trace, &plan), format!("time steps {expected}: windows last 250 ms"));
        }
        let steps = FollowedSteps {
            function: "MPI_Allreduce".into(),
            module: "/bin/nowhere".into(),
            offset: 0x40,
            every: 1,
            per_step: 1,
            window: 7,
            first_window: 7,
            ..FollowedSteps::default()
        };
        trace.ranks.iter_mut().for_each(|rank| rank.process.followed = Some(Box::new(steps.clone())));
        let all = "time steps windows follow MPI_Allreduce at nowhere+0x40, every step, from window 7 on; those before \
                   last 250 ms";
        assert_eq!(line(&trace, &plan), all);
        let many = FollowedSteps { every: 12, per_step: 6, ..steps.clone() };
        trace.ranks[0].process.followed = Some(Box::new(many));
        assert_eq!(line(&trace, &plan), all.replace("every step", "every 2 steps of 6 calls"));
        trace.ranks[0].process.followed = Some(Box::new(steps.clone()));
        let other = FollowedSteps { offset: 0x80, ..steps.clone() };
        trace.ranks[2].process.followed = Some(Box::new(other));
        let several = all.replace("0x40,", "0x40 and 1 other call of the same steps,");
        assert_eq!(line(&trace, &plan), several);
        trace.ranks[2].process.followed = Some(Box::new(steps.clone()));
        trace.ranks[3].process.followed = Some(Box::new(FollowedSteps { first_window: 9, ..steps.clone() }));
        trace.ranks[4].process.followed = None;
        trace.ranks[5].process.steps = vec![Step { window: 11, level: Level::Clock, ..Step::default() }];
        let rest = "; 1 rank (3) followed late, all do from window 9 on; by the clock again from window 11 on, as no step \
                    came; 1 rank (4) did not";
        assert_eq!(line(&trace, &plan), format!("{all}{rest}"));
        let later = FollowedSteps { offset: 0x90, window: 20, first_window: 20, replaces: Some(7), ..steps };
        trace.ranks.iter_mut().for_each(|rank| rank.process.followed = Some(Box::new(later.clone())));
        // The clock has ended windows of the loop before only.
        let replaced = "time steps windows follow MPI_Allreduce at nowhere+0x90, every step, from window 20 on; those before \
                        last 250 ms, and from window 7 on follow a loop inside of them, or one that was over";
        assert_eq!(line(&trace, &plan), replaced);
        trace.ranks[1].process.followed = Some(Box::new(FollowedSteps { left: Some(31), ..later }));
        let left = "; window 31 lasts on, as other steps were found then and did not begin";
        assert_eq!(line(&trace, &plan), format!("{replaced}{left}"));
        let plain = Synthetic::default();
        assert_eq!(line(&plain.trace(), &plain.plan()), "");
    }
}
