//! Tables of the measurements, for people.

use super::measure::{Cell, Sums};
use super::options::{Level, Options};

/// Prints one table.
pub fn print(options: &Options, ranks: u32, cells: &[Cell]) {
    println!("\nM = {ranks}");
    println!(
        "{:<6} {:<14} {:>8} {:>7} {:<16} {:>6} {:>9} {:>9}",
        "level", "method", "windows", "worst", "", "gm", "intervals", "aims"
    );
    for cell in cells {
        println!("{}", line(ranks, cell));
        if options.undeclared {
            let count = cell.populations.len() as f64;
            let each = cell.populations.iter().map(|(_, sums)| sums.undeclared.coverage());
            let (plain, calibrated) = each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            println!(
                "         undeclared metric, cv .3, correlation .5: {:.3}; calibrated on the guide's total {:.3}; \
                 {:.1} ranks kept",
                plain / count,
                calibrated / count,
                cell.populations.iter().map(|(_, sums)| sums.mean_size()).sum::<f64>() / count
            );
        }
        if options.detail {
            for (kind, sums) in &cell.populations {
                println!(
                    "         {:<16} coverage {:.3}  m {:>8.1}  oracle {:>8.1}  m/oracle {:>5.2}  of intervals {:.3}",
                    kind.name(),
                    sums.coverage(),
                    sums.mean_size(),
                    sums.oracle_size(),
                    sums.cost(),
                    sums.intervals_covered / sums.intervals
                );
            }
        }
    }
}

fn line(ranks: u32, cell: &Cell) -> String {
    let count = cell.populations.len() as f64;
    let mean = |of: fn(&Sums) -> f64| cell.populations.iter().map(|(_, sums)| of(sums)).sum::<f64>() / count;
    let coverage = mean(Sums::coverage);
    let intervals = mean(|sums| sums.intervals_covered / sums.intervals);
    let gm = mean(|sums| sums.cost().ln()).exp();
    let by_coverage = |a: &&(_, Sums), b: &&(_, Sums)| a.1.coverage().total_cmp(&b.1.coverage());
    let (kind, worst) = cell.populations.iter().min_by(by_coverage).expect("there are populations");
    let nominal = cell.level.confidence;
    let decision = match cell.method.aims(ranks) {
        None => "control".to_owned(),
        Some((below, worst_below, most)) => {
            let aims = [
                ("mean", coverage >= nominal - below),
                ("worst", worst.coverage() >= nominal - worst_below),
                ("gm", gm <= most),
            ];
            let missed: Vec<&str> = aims.iter().filter(|(_, met)| !met).map(|(name, _)| *name).collect();
            if missed.is_empty() { "met".into() } else { format!("missed: {}", missed.join(", ")) }
        }
    };
    format!(
        "{:<6} {:<14} {coverage:>8.3} {:>7.3} {:<16} {gm:>6.2} {intervals:>9.3}   {decision}",
        name(cell.level),
        cell.method.name(),
        worst.coverage(),
        kind.name(),
    )
}

fn name(level: Level) -> String {
    format!("{:.0}/{:.0}", 100.0 * level.confidence, 100.0 * level.error)
}
