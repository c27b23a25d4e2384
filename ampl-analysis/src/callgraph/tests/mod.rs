//! Graphs against naive trees of the decoded calls.

mod naive;
mod ranges;
mod regions;
mod threads;
mod views;
