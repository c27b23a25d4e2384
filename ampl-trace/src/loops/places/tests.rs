//! Programs whose calls are all made by functions around MPI.

use crate::grammar::Builder;
use crate::loops::{Calls, Set, Token};

/// Calls of a program: each has a place and a way.
#[derive(Default)]
struct Program(Vec<(u32, usize)>);

impl Program {
    /// An exchange: a receive, a send and a wait, in a function that is called at `way`.
    fn exchange(&mut self, way: usize) {
        (0..3).for_each(|place| self.0.push((place, way)));
    }

    /// A sum, likewise.
    fn sum(&mut self, way: usize) {
        self.0.push((3, way));
    }

    fn barrier(&mut self) {
        self.0.push((4, 0));
    }

    /// Iterations of a solver: its sums and exchanges are called at `way` and behind.
    fn solve(&mut self, iterations: usize, way: usize) {
        self.sum(way);
        for _ in 0..iterations {
            self.exchange(way + 1);
            self.sum(way + 2);
            self.sum(way + 3);
        }
        self.exchange(way + 4);
    }

    /// Steps and other numbers that the same calls may have.
    fn steps(&self) -> Option<(u64, Vec<u64>)> {
        let mut builder = Builder::new();
        let mut kinds: Vec<(u32, usize)> = Vec::new();
        for call in &self.0 {
            let terminal = kinds.iter().position(|kind| kind == call).unwrap_or_else(|| {
                kinds.push(*call);
                kinds.len() - 1
            });
            builder.push(terminal as u32, 1);
        }
        let tokens: Vec<Token> = (0..kinds.len() as u32).map(Token::Shape).collect();
        let places: Vec<u32> = kinds.iter().map(|kind| kind.0).collect();
        let way = |shape: &u32| kinds[*shape as usize].1;
        // Iterations of a solver, whose ways follow each other, are in a function of their own.
        let encloses = |inner: &Set, rest: &Set| {
            let solver = inner.iter().map(way).min().map(|way| way / 10 * 10).unwrap_or_default();
            solver >= 10
                && rest.iter().map(way).any(|way| way / 10 * 10 == solver)
                && rest.iter().map(way).any(|way| way / 10 * 10 != solver)
        };
        let calls = Calls {
            tokens: &tokens,
            functions: &vec![ampl_core::mpi::ids::MPI_ALLREDUCE.0; kinds.len()],
            places: &places,
            arguments: &vec![(None, 0); kinds.len()],
            encloses: &encloses,
            is_placed: &|_| true,
            work: crate::loops::MOST_WORK,
            goes_on: false,
        };
        calls.find(&builder.into_grammar()).unwrap().map(|found| (found.steps, found.others))
    }
}

fn of(program: impl FnOnce(&mut Program)) -> Option<(u64, Vec<u64>)> {
    let mut own = Program::default();
    program(&mut own);
    own.steps()
}

/// Numbers of `program` with 97 steps, each made by `step`.
fn steps(mut step: impl FnMut(&mut Program, usize)) -> Option<(u64, Vec<u64>)> {
    of(|program| (1..98).for_each(|time| step(program, time)))
}

fn exact(others: &[u64]) -> Option<(u64, Vec<u64>)> {
    Some((97, others.to_vec()))
}

#[test]
fn stages_of_a_step_are_told_apart_by_their_ways() {
    let stages = |program: &mut Program| (1..4).for_each(|stage| program.exchange(stage));
    let with_sum = |program: &mut Program, _| {
        stages(program);
        program.sum(1);
    };
    assert_eq!(steps(with_sum), exact(&[]));
    assert_eq!(steps(|program, _| stages(program)), exact(&[]));
    let many = |program: &mut Program, _| {
        (0..6).for_each(|way| program.exchange(way));
        program.sum(1);
        program.exchange(7);
        program.sum(2);
    };
    assert_eq!(steps(many), exact(&[]));
}

#[test]
fn iterations_inside_of_a_step_are_told_apart_by_their_ways() {
    let varied = |program: &mut Program, time: usize| {
        program.exchange(1);
        for _ in 0..3 + time * 7 % 6 {
            program.exchange(2);
            program.sum(1);
        }
    };
    assert_eq!(steps(varied).map(|of| of.0), Some(97));
    let solver = |program: &mut Program, time: usize| {
        program.exchange(1);
        for _ in 0..2 + time * 5 % 7 {
            program.exchange(2);
            program.sum(1);
        }
        program.exchange(3);
        program.sum(2);
        if time.is_multiple_of(20) {
            program.sum(3);
        }
    };
    assert_eq!(steps(solver).map(|of| of.0), Some(97));
}

#[test]
fn calls_before_and_behind_the_loop_are_no_steps() {
    let found = of(|program| {
        for way in 10..14 {
            program.exchange(way);
            program.sum(way);
        }
        program.barrier();
        for _ in 0..97 {
            program.exchange(1);
            program.sum(1);
        }
        program.sum(3);
        program.exchange(4);
    });
    assert_eq!(found, exact(&[]));
}

#[test]
fn a_first_or_last_step_without_some_calls_is_one() {
    let stages = |program: &mut Program| (1..4).for_each(|way| program.exchange(way));
    // A first step that has no step before it to agree with the others on.
    let without = of(|program| {
        program.exchange(9);
        program.barrier();
        for time in 0..97 {
            (0..usize::from(time > 0)).for_each(|_| program.sum(1));
            stages(program);
        }
        program.sum(2);
    });
    assert_eq!(without, exact(&[]));
    // The first step reads something besides, the last one writes.
    let besides = of(|program| {
        for time in 0..97 {
            stages(program);
            (0..usize::from(time == 0)).for_each(|_| program.sum(1));
            (0..usize::from(time == 96)).for_each(|_| program.sum(2));
            program.exchange(4);
        }
        program.barrier();
    });
    assert_eq!(besides, exact(&[]));
    // Half of a step is none.
    let half = of(|program| {
        for _ in 0..97 {
            program.sum(1);
            program.exchange(1);
            program.exchange(2);
            program.barrier();
        }
        program.sum(1);
    });
    assert_eq!(half, exact(&[]));
}

#[test]
fn a_call_at_three_places_is_no_loop() {
    let found = of(|program| {
        (1..4).for_each(|way| program.sum(way));
        program.barrier();
    });
    assert_eq!(found, None);
}

#[test]
fn iterations_of_a_solver_are_no_steps() {
    // Ten exchanges and a sum in each step, or a sum in every tenth.
    let ten = |program: &mut Program, _| {
        (0..10).for_each(|_| program.exchange(1));
        program.sum(1);
    };
    assert_eq!(steps(ten), Some((970, vec![97])));
    let solver = |program: &mut Program, _| {
        program.exchange(20);
        program.solve(25, 10);
        program.sum(20);
    };
    assert_eq!(steps(solver), exact(&[]));
    let varied = |program: &mut Program, time: usize| {
        program.exchange(20);
        program.solve(4 + time * 7 % 9, 10);
        program.sum(20);
    };
    let found = of(|program| {
        program.solve(3, 30);
        (0..97).for_each(|time| varied(program, time));
    });
    assert_eq!(found, exact(&[]));
}

#[test]
fn functions_around_calls_before_the_loop_leave_it_as_it_is() {
    // Input by one function, called at many places; then steps that each place of calls has one way in.
    let found = of(|program| {
        (0..40).for_each(|read| program.sum(read * 7 % 13));
        for time in 1..98 {
            program.exchange(1);
            if time % 7 == 0 {
                program.barrier();
            }
        }
    });
    assert_eq!(found, exact(&[]));
}
