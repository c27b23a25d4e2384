//! Buffers in the memory of devices, with stand-ins for CUDA's driver and HIP's runtime: no device is at hand.

use std::collections::BTreeSet;

use ampl_tests::job::{Job, Mpi, compile_library};
use ampl_tests::run::{Form, monitor};
use serde_json::Value;

const RANKS: u32 = 2;
const TURNS: usize = 50;

#[test]
fn buffers_in_the_memory_of_devices_are_told_apart() {
    for (name, source) in [("libcuda.so.1", "fake_devices.cc"), ("libamdhip64.so.6", "fake_hip.cc")] {
        let library = compile_library(name, source);
        for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
            let job = Job::of(mpi, RANKS, "device_buffers", &[library.to_str().expect("a path of ours")]);
            let plain = job.plain().success().stdout;
            assert_eq!(plain, "last error 0\n", "{mpi:?} {name}");
            let config = "[agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
            let run = monitor(&job, config, Form::Run).success();
            assert_eq!(run.finished.stdout, plain, "{mpi:?} {name}");
            for rank in 0..RANKS {
                let calls = run.decode(rank);
                let buffers = |tag: u32, key: &str| -> Vec<String> {
                    let of = calls
                        .iter()
                        .filter(|call| call["fn"] == "MPI_Sendrecv" && call["args"]["sendtag"] == tag);
                    of.map(|call| call["args"][key].as_str().unwrap_or_default().to_owned()).collect()
                };
                let sent: BTreeSet<String> = buffers(1, "sendbuf").into_iter().collect();
                let received: BTreeSet<String> = buffers(1, "recvbuf").into_iter().collect();
                let of_device = |all: &BTreeSet<String>, device: &str| {
                    all.iter().all(|buffer| buffer.starts_with(&format!("device:{device}+0x")))
                };
                assert!(sent.len() == 1 && of_device(&sent, "0"), "{mpi:?} {name}: {sent:?}");
                assert!(received.len() == TURNS && of_device(&received, "1"), "{mpi:?} {name}: {received:?}");
                let host = [buffers(2, "sendbuf"), buffers(2, "recvbuf")].concat();
                assert_eq!(host.len(), 2 * TURNS, "{mpi:?} {name}");
                assert!(host.iter().all(|buffer| buffer.starts_with("0x")), "{mpi:?} {name}: {host:?}");
            }
            assert_eq!(run.info()["agent_failures"], Value::from(0), "{mpi:?} {name}");
        }
    }
}
