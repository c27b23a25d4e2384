//! Tests of ampl-core, one module per subject: one program, because each links everything.

mod cluster_choose;
#[cfg(feature = "cluster")]
mod cluster_compare;
mod cluster_config;
#[cfg(feature = "cluster")]
mod cluster_linfa;
mod cluster_pam;
mod common;
mod config;
mod config_effects;
mod config_groups;
mod config_hostile;
mod config_keys;
mod config_properties;
mod config_values;
mod configs;
mod constants;
mod exact;
mod looser;
mod properties;
mod strata;
