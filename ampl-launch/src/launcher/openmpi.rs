//! Options of Open MPI's mpirun 4 (`mpirun --help all`) and of the prterun that is mpirun 5.

use crate::options::{Options, Syntax};

/// `dvm` is left out: it has a value in version 5 and none in version 4. So is `preload-binary`, which would copy
/// ampl instead of the program.
pub const OPTIONS: Options = Options {
    syntax: Syntax::Words,
    flags: "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d debug-devel debug \
            debug-daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation \
            display-devel-map display-diffable-map display-map display-topo do-not-launch do-not-resolve \
            enable-instant-on-support enable-recovery fwd-mpirun-port get-stack-traces index-argv-by-rank \
            leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm oversubscribe \
            output-proctable pernode q quiet report-bindings report-child-jobs-separately \
            report-state-on-timeout set-cwd-to-session-dir show-progress tag-output timestamp-output tv \
            use-hwthread-cpus use-regexp v verbose xml \
            daemonize do-not-connect do-not-aggregate-help stop-on-exec no-ready-msg system-server-first \
            system-server-only",
    one: "am bind-to c np n N cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger \
          default-hostfile H host hnp hostfile launch-agent machinefile map-by max-restarts max-vm-size npernode \
          npersocket ompi-server output-filename path personality ppr prefix preload-files rank-by \
          report-events report-pid report-uri rf rankfile stdin timeout tune wd wdir x xml-file xterm \
          add-host add-hostfile display forward-signals gpu-support initial-errhandler memory-alloc-kinds output \
          pset rtos runtime-options spawn-timeout stream-buffering with-ft",
    two: "mca gmca omca gomca prtemca gprtemca pmixmca gpmixmca",
    files: "app",
};
