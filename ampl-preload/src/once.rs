//! Messages that every rank could print: the first of its node does.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use ampl_agent::descriptor::high;

use crate::environment;

/// True where no other process of this launch has called this with the same `what` on this node.
///
/// A socket name marks the call; the system frees it when the process ends: such jobs are often killed.
pub fn is_first(what: &str) -> bool {
    // SAFETY: never fails.
    let name = format!("ampl-{what}-{}-{}", unsafe { libc::getuid() }, environment::launch());
    let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
    match bound {
        Ok(socket) => std::mem::forget(high(socket)),
        // Better twice than not at all.
        Err(error) => return error.kind() != ErrorKind::AddrInUse,
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_of_several_is_first() {
        assert!(super::is_first("test-one"));
        assert!(!super::is_first("test-one"));
        assert!(super::is_first("test-other"));
    }
}
