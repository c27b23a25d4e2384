//! Counts that differ from one time to the next, as lists of the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ampl_analysis::logical::{Count, Thread, Use};

use super::expression::Expressions;

/// One list: the counts, and the number that it has in each class that reads it.
#[derive(Debug)]
struct List {
    counts: Vec<(u64, u64)>,
    classes: BTreeMap<u32, u32>,
}

/// The lists of a program.
#[derive(Debug, Default)]
pub struct Lists {
    all: Vec<List>,
}

impl Lists {
    /// The next count of a part with these uses, as an expression.
    pub fn next(&mut self, uses: &[Use], thread: &Thread, out: &mut Expressions) -> String {
        out.helpers.lists = true;
        let mut by_rank: Vec<(u32, usize)> = Vec::new();
        for used in uses {
            let class = &thread.classes[used.class as usize];
            let list = match used.count {
                Count::Listed(number) => self.list(used.class, number, class.list(number)),
                // Numbers of lists are far below.
                Count::Always(times) => self.list(used.class, u32::MAX, &[(times, 1 << 40)]),
            };
            by_rank.extend(class.ranks.iter().map(|&rank| (rank, list)));
        }
        let first = by_rank.first().map_or(0, |&(_, list)| list);
        if by_rank.iter().all(|&(_, list)| list == first) {
            return format!("next(&list[{first}])");
        }
        let size = by_rank.iter().map(|&(rank, _)| rank as usize + 1).max().unwrap_or(0);
        let mut table = vec!["0".to_owned(); size];
        by_rank.iter().for_each(|&(rank, list)| table[rank as usize] = list.to_string());
        format!("next(&list[{}[rank]])", out.tables.name("list_of", "int", &table))
    }

    /// Number of the list that a class reads as its `number`, which has these counts.
    fn list(&mut self, class: u32, number: u32, counts: &[(u64, u64)]) -> usize {
        let counts: Vec<(u64, u64)> = counts.iter().copied().filter(|&(_, times)| times > 0).collect();
        let known = |list: &List| list.classes.get(&class) == Some(&number) && list.counts == counts;
        if let Some(at) = self.all.iter().position(known) {
            return at;
        }
        // A list is read in one place by each class: ranks of several classes share what is the same.
        let free = |list: &List| list.counts == counts && !list.classes.contains_key(&class);
        let at = self.all.iter().position(free).unwrap_or_else(|| {
            self.all.push(List { counts, classes: BTreeMap::new() });
            self.all.len() - 1
        });
        self.all[at].classes.insert(class, number);
        at
    }

    /// Their definitions and the function that reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (number, list) in self.all.iter().enumerate() {
            let counts: Vec<String> =
                list.counts.iter().map(|(times, often)| format!("{{{times}, {often}}}")).collect();
            let _ = writeln!(
                text,
                "static const long list_{number}[][2] = {{{}}};",
                if counts.is_empty() { "{0, 1}".to_owned() } else { counts.join(", ") }
            );
        }
        let all: Vec<String> = (0..self.all.len()).map(|number| format!("{{list_{number}, 0}}")).collect();
        let _ = write!(
            text,
            "/* Repetitions that vary: each number, and how often it comes in a row. */
static struct list {{
    const long (*counts)[2];
    long taken;
}} list[] = {{{}}};

static long next(struct list *list)
{{
    if (list->taken == (*list->counts)[1]) {{
        list->counts++;
        list->taken = 0;
    }}
    list->taken++;
    return (*list->counts)[0];
}}

",
            all.join(", ")
        );
        text
    }
}
