//! Sampling statistics.
