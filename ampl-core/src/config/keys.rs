//! Keys and tables of `JOB.toml`, for documentation and tests.

pub use super::schema::{KEYS, Key, Shape, TABLES, Table, find, nearest, nearest_key, table};
