//! Topologies that are found, and others that must not be.

mod common;
mod found;
mod none;
