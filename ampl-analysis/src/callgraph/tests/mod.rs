//! Graphs against naive trees of the decoded calls.

mod naive;
mod regions;
mod threads;
mod views;
