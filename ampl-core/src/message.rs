//! Messages between agents and client.
