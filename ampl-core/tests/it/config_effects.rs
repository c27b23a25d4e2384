//! Every key of `JOB.toml` has an effect: a test of its effect in a job exists, or this version announces that the key
//! has none yet.
//!
//! `config_keys.rs` tests that its value is read; this is about its effect.

#![expect(clippy::disallowed_methods, reason = "the tests are files; the crate itself reads none")]

use std::path::Path;

use ampl_core::config::Config;
use ampl_core::config::keys::{KEYS, Key};

/// Key, file and name of a test that fails where the key is ignored.
const EFFECTS: &[(&str, &str, &str)] = &[
    ("sites", "ampl-cli/tests/command_line.rs", "a_file_of_sites_takes_its_place"),
    ("sampling.windows_per_update", "tests/loop/stress.rs", "random_jobs_end_and_are_told_right"),
    ("sampling.update_mechanism", "tests/e2e/adaptive.rs", "census_global"),
    ("sampling.summaries", "tests/e2e/adaptive.rs", "sampled_estimates_keep_their_promise"),
    (
        "sampling.selection",
        "ampl-client/tests/it/retrospective.rs",
        "the_simulator_does_what_ranks_do_by_themselves",
    ),
    ("sampling.sizing", "ampl-client/tests/it/coverage.rs", "ampl_2008_falls_short_where_windows_vary"),
    ("sampling.floor", "tests/e2e/sites.rs", "a_site_has_a_bound_of_its_own"),
    ("sampling.seed", "ampl-client/tests/it/figure4.rs", "another_seed_draws_others"),
    ("sampling.budget", "tests/e2e/adaptive.rs", "a_budget_is_kept_and_the_bound_attained_is_told"),
    ("sampling.partners", "tests/e2e/partners.rs", "without_the_key_nothing_is_kept_for_others"),
    ("window.marker", "tests/e2e/recipes.rs", "every_recipe_runs"),
    ("window.every", "tests/api/steps.rs", "every_third_exit_ends_a_window"),
    ("window.max", "ampl-agent/tests/it/growth.rs", "windows_grow_alike_on_every_rank"),
    ("metric.name", "tests/e2e/counters.rs", "the_kernel_s_counters_count_the_ranks_work"),
    (
        "metric.event",
        "ampl-agent/tests/it/thread.rs",
        "single_call_events_count_every_call_of_their_function",
    ),
    ("metric.role", "ampl-client/tests/it/policy.rs", "the_most_demanding_guide_decides"),
    ("metric.optional", "tests/e2e/counters.rs", "what_this_machine_cannot_count_is_an_error_or_left_out"),
    ("group.name", "tests/e2e/figure4.rs", "half_by_its_guide_and_half_by_number"),
    ("group.members", "tests/e2e/figure4.rs", "half_by_its_guide_and_half_by_number"),
    ("group.program", "tests/e2e/mpmd.rs", "groups_are_programs_or_name_them"),
    ("group.confidence", "ampl-client/tests/it/coverage.rs", "other_levels_hold_too"),
    ("group.error", "ampl-client/tests/it/coverage.rs", "other_levels_hold_too"),
    ("group.error_abs", "ampl-client/tests/it/policy.rs", "absolute_bounds_survive_a_mean_of_zero"),
    ("group.stratify", "tests/loop/divided.rs", "two_classes_are_two_strata"),
    ("group.k", "ampl-client/tests/it/divided.rs", "so_many_strata_as_asked_for"),
    ("group.sample_size", "tests/e2e/figure4.rs", "half_by_its_guide_and_half_by_number"),
    ("group.pinned", "tests/e2e/figure4.rs", "half_by_its_guide_and_half_by_number"),
    ("site.match", "ampl-agent/src/policies.rs", "a_site_goes_before_its_function"),
    ("site.trace", "tests/e2e/sites.rs", "on_aggregate_and_off_are_three_things"),
    ("site.error", "tests/e2e/sites.rs", "a_site_has_a_bound_of_its_own"),
    ("site.confidence", "tests/e2e/sites.rs", "a_site_has_a_bound_of_its_own"),
    (
        "trace.structure",
        "ampl-agent/tests/it/structure.rs",
        "the_key_says_of_which_windows_calls_are_recorded",
    ),
    ("trace.timing", "tests/e2e/governor.rs", "everything_is_everything"),
    ("trace.time_error", "ampl-agent/tests/it/structure.rs", "times_are_as_exact_as_the_keys_ask"),
    ("trace.time_floor", "ampl-agent/tests/it/structure.rs", "times_are_as_exact_as_the_keys_ask"),
    ("trace.call_sites", "tests/e2e/faults.rs", "call_sites_are_left_out"),
    ("trace.call_path_depth", "tests/e2e/paths.rs", "two_ways_to_one_call_are_told_apart"),
    ("trace.addresses", "tests/e2e/summaries.rs", "files_are_flat"),
    ("trace.values", "tests/e2e/aggregated.rs", "counts_of_ranks_are_a_mean_and_its_ends"),
    ("trace.regions", "ampl-agent/tests/it/regions.rs", "named_and_short_regions_are_left_out"),
    ("trace.region_floor", "ampl-agent/tests/it/regions.rs", "named_and_short_regions_are_left_out"),
    (
        "output.dir",
        "ampl-cli/tests/command_line.rs",
        "run_puts_exec_before_the_program_and_returns_the_status",
    ),
    ("output.record", "tests/e2e/archive.rs", "a_job_leaves_one_record"),
    ("output.mode", "tests/e2e/metadata.rs", "what_the_job_file_keeps_private_is_stored_nowhere"),
    ("output.arguments", "tests/e2e/metadata.rs", "what_the_job_file_keeps_private_is_stored_nowhere"),
    ("output.copy", "tests/e2e/copied.rs", "copies_are_enough_where_memory_is_cleared"),
    ("output.journal", "tests/e2e/disk_full.rs", "a_place_that_is_full_is_done_without"),
    ("output.rank_summaries", "tests/e2e/summaries.rs", "summaries_are_stored_of_whom_the_key_says"),
    ("output.summary_error", "tests/e2e/summaries.rs", "rounded_summaries_keep_sums_exact"),
    ("output.max_bytes", "tests/e2e/limits.rs", "a_small_trace_leaves_out_times_and_then_calls"),
    ("output.verify", "tests/e2e/verify.rs", "what_would_have_been_kept_is_marked_and_judged"),
    ("agent.client", "tests/e2e/recover.rs", "decisions_are_in_the_journal_of_the_client"),
    ("agent.max_overhead", "tests/e2e/governor.rs", "steps_down_and_up_again_under_open_mpi"),
    (
        "agent.max_structure_overhead",
        "tests/e2e/governor.rs",
        "calls_are_recorded_up_to_a_limit_of_their_own",
    ),
    ("agent.max_memory", "tests/e2e/limits.rs", "little_memory_leaves_summaries_and_counts"),
    ("hooks.functions", "tests/e2e/regions.rs", "functions_are_regions_where_asked_for"),
    ("hooks.kokkos", "tests/e2e/tool_hooks.rs", "kokkos_regions_and_kernels"),
    ("hooks.nvtx", "tests/e2e/tool_hooks.rs", "nvtx_ranges"),
    ("hooks.itt", "tests/e2e/tool_hooks.rs", "itt_tasks"),
    ("hooks.ompt", "tests/e2e/tool_hooks.rs", "parallel_regions_of_openmp"),
    ("hooks.perfstubs", "tests/e2e/tool_hooks.rs", "perfstubs_timers_and_counters"),
    ("hooks.caliper", "tests/e2e/tool_hooks.rs", "caliper_annotations"),
    ("hooks.nccl", "tests/e2e/tool_hooks.rs", "calls_of_nccl"),
    ("hooks.filter", "tests/e2e/regions.rs", "functions_are_left_out_by_name_and_where_they_are_short"),
    ("hooks.floor", "tests/e2e/regions.rs", "functions_are_left_out_by_name_and_where_they_are_short"),
];

/// How a test that makes its configuration of Rust's types writes a setting that has another name there.
const OTHERWISE: &[(&str, &str)] = &[
    ("metric.role", "guide: true"),
    ("group.confidence", "relative(confidence, error)"),
    ("group.error", "relative(confidence, error)"),
    ("group.error_abs", "ErrorBound::Absolute("),
];

/// `true` if the tests of a file with that `text` set the key: its name with a value, or another form of it.
///
/// The whole file counts, not the test alone, as its helpers may write the configuration.
fn sets(text: &str, key: &Key) -> bool {
    let path = key.path();
    let code = |line: &&str| !line.trim_start().starts_with("//");
    let otherwise = OTHERWISE.iter().find(|(of, _)| *of == path);
    let forms = match otherwise {
        Some((_, written)) => vec![(*written).to_owned()],
        None => vec![format!("{} =", key.name), format!(".{}", key.name), format!("{}:", key.name)],
    };
    text.lines().filter(code).any(|line| forms.iter().any(|form| line.contains(form)))
}

/// `true` if `text` has a test of that name that is run.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begin = format!("fn {name}(");
    let Some(at) = lines.iter().position(|line| line.starts_with(&begin)) else { return false };
    let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    attributes.clone().any(|line| *line == "#[test]") && !attributes.any(|line| line.starts_with("#[ignore"))
}

/// `true` if this version announces that it does not act on the good value of the key.
fn is_announced(key: &Key) -> bool {
    let notices =
        |value: &str| Config::parse(&key.job(Some(value))).is_ok_and(|(_, notices)| !notices.is_empty());
    notices(key.good)
}

#[test]
fn no_key_is_without_effect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for key in KEYS {
        let path = key.path();
        let Some((_, file, test)) = EFFECTS.iter().find(|(effect, ..)| *effect == path) else {
            assert!(is_announced(key), "{path}: who tests what it does, or says that it does nothing yet?");
            continue;
        };
        let text = std::fs::read_to_string(root.join(file))
            .unwrap_or_else(|error| panic!("{path}: {file}: {error}"));
        assert!(has_test(&text, test), "{path}: {file} has no test {test} that is run");
        assert!(sets(&text, key), "{path}: no test in {file} sets it");
    }
}

#[test]
fn tests_that_do_not_run_and_keys_in_comments_do_not_count() {
    let seed = KEYS.iter().find(|key| key.path() == "sampling.seed").expect("it is a key");
    assert!(has_test("#[test]\nfn a() {}", "a") && !has_test("fn a() {}", "a") && !has_test("", "a"));
    assert!(!has_test("#[test]\n#[ignore = \"slow\"]\nfn a() {}", "a"));
    assert!(sets("config.sampling.seed = 7;", seed) && sets("let text = \"seed = 7\";", seed));
    assert!(!sets("// seed = 7\nlet reseeded = 3;", seed));
}

#[test]
fn every_row_is_of_a_key() {
    for path in EFFECTS.iter().map(|(path, ..)| path).chain(OTHERWISE.iter().map(|(path, _)| path)) {
        assert!(KEYS.iter().any(|key| key.path() == *path), "{path}");
    }
}
