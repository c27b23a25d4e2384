//! Options of hydra's mpiexec: MPICH 3 to 5 (`mpiexec --help`), and Intel MPI's additions.

use crate::options::{Options, Syntax};

/// Options whose value is optional (Intel's `-trace`, `-tune`, `-check_mpi`) are left out: the next word could be
/// either.
pub const OPTIONS: Options = Options {
    syntax: Syntax::Words,
    flags: "genvnone genvall envnone envall enable-x disable-x v verbose print-all-exitcodes profile \
            prepend-rank l disable-auto-cleanup enable-auto-cleanup noclean disable-hostname-propagation \
            enable-hostname-propagation pmi-port skip-launch-node hybrid-hosts \
            rr nolocal localonly print-rank-map rdma RDMA dapl DAPL ib IB mx MX psm PSM psm2 PSM2 psm2-mpi ilp64 \
            gdb tv cleanup ordered-output",
    one: "genvlist f hostfile machinefile machine hosts host rankmap wdir wd envlist n np memory-alloc-kinds \
          launcher bootstrap launcher-exec bootstrap-exec rmk topolib binding bind-to map-by membind demux iface ppn \
          prepend-pattern outfile-pattern outfile errfile-pattern errfile nameserver order-nodes localhost usize \
          gpus-per-proc gpu-subdevs-per-proc timeout arch soft \
          perhost grr genvexcl s tmpdir gtool gtoolfile path umask hosts-group port-range localroot \
          configfile-env delegate",
    two: "genv env",
    files: "configfile",
};
