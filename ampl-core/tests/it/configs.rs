//! Every recipe in `configs/` is read without an error or a notice.

#![expect(clippy::disallowed_methods, reason = "the recipes are files; the crate itself reads none")]

use std::path::Path;

use ampl_core::config::{Config, ErrorBound, Marker, Mechanism, Target, Window};
use ampl_core::plan::Plan;

#[test]
fn every_recipe_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut count = 0;
    for entry in folder.read_dir().expect("configs/ is there") {
        let path = entry.expect("configs/ can be listed").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a recipe is text");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match Config::parse(&text) {
            Ok((_, notices)) => assert!(notices.is_empty(), "{}", notices[0].render(&name)),
            Err(errors) => panic!("{}", errors.render(&name)),
        }
        assert!(text.starts_with("# "), "{name} says first what it is for");
        count += 1;
    }
    assert!(count >= 9, "{count} recipes");
}

#[test]
fn the_default_recipe_is_the_default() {
    let text = include_str!("../../../configs/default.toml");
    let (config, _) = Config::parse(text).expect("the default recipe parses");
    assert_eq!(config, Config::default());
}

#[test]
fn the_default_recipe_shows_every_key_of_this_version() {
    use ampl_core::config::keys::KEYS;
    let text = include_str!("../../../configs/default.toml");
    for key in KEYS {
        assert!(text.contains(&format!("{} = ", key.name)), "{}", key.path());
    }
}

/// The paper's Figure 4: what it says of groups, windows and updates.
#[test]
fn figure_4_is_the_papers() {
    let text = include_str!("../../../configs/figure4.toml");
    let (config, _) = Config::parse(text).expect("the recipe parses");
    assert_eq!(config.window, Window { marker: Marker::Region("TIMESTEP".into()), every: 1, max: 20_000 });
    assert_eq!(config.sampling.windows_per_update, 4);
    assert_eq!(config.sampling.update_mechanism, Mechanism::Subset);
    let plan = Plan::new(config, 256).expect("256 ranks have every member");
    let [adaptive, fixed] = &plan.groups[..] else { panic!("{:?}", plan.groups) };
    assert_eq!((adaptive.name.as_str(), adaptive.members.to_string().as_str()), ("Adaptive", "0-127"));
    let bound = Target::Bound { confidence: 0.90, error: ErrorBound::Relative(0.03) };
    assert_eq!(adaptive.target, bound);
    assert_eq!((fixed.name.as_str(), fixed.members.to_string().as_str()), ("Static", "128-255"));
    assert_eq!((fixed.target, fixed.pinned.to_string().as_str()), (Target::Static { ranks: 30 }, "128-137"));
    // A guide that every machine has, and the paper's where it can be had.
    let guides = plan.metrics.iter().filter(|metric| metric.guide);
    let guides: Vec<_> = guides.map(|metric| (metric.name().into_owned(), metric.optional)).collect();
    assert_eq!(guides, [("compute.time".into(), false), ("papi.PAPI_FP_INS".into(), true)]);
}
