//! Every recipe in `configs/` is read without an error or a notice.

#![expect(clippy::disallowed_methods, reason = "the recipes are files; the crate itself reads none")]

use std::path::Path;

use ampl_core::config::Config;

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
    assert!(count >= 4, "{count} recipes");
}

#[test]
fn the_default_recipe_is_the_default() {
    let text = include_str!("../../configs/default.toml");
    let (config, _) = Config::parse(text).expect("the default recipe parses");
    assert_eq!(config, Config::default());
}

#[test]
fn the_default_recipe_shows_every_key_of_this_version() {
    use ampl_core::config::keys::{KEYS, Support};
    let text = include_str!("../../configs/default.toml");
    for key in KEYS.iter().filter(|key| !matches!(key.support, Support::None(_))) {
        // `partners` and `optional` only choose among what this version does not have.
        if !["partners", "optional"].contains(&key.name) {
            assert!(text.contains(key.name), "{}", key.path());
        }
    }
}
