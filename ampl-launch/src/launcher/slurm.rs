//! Options of Slurm's srun (its manual page, 20.11 to 24.05).

use crate::options::{Options, Syntax};

/// Long options whose value may only be attached stand with the flags.
pub const OPTIONS: Options = Options {
    syntax: Syntax::Getopt { attached: "IkK" },
    flags: "E H h l O Q s u v V X Z preserve-env hold label overcommit overlap oversubscribe share unbuffered \
            verbose quiet disable-status no-allocate contiguous exact external-launcher interactive ignore-pbs \
            quit-on-interrupt reboot spread-job stepmgr use-min-nodes test-only debugger-test async \
            bcast compress exclusive get-user-env immediate kill-on-bad-exit no-kill nice propagate pty resv-ports \
            send-libs multi-prog",
    one: "A B c C d D e F G i J L m M n N o p q r S t T w W x \
          account accel-bind acctg-freq bb bbf bcast-exclude begin chdir cluster-constraint clusters comment \
          constraint container container-id core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task \
          deadline delay-boot dependency distribution epilog error exclude export extra extra-node-info gid gpu-bind \
          gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input job-name \
          jobid licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout \
          network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket \
          open-mode output pack-group partition power prefer priority profile prolog qos relative reservation segment \
          signal slurmd-debug sockets-per-node switches task-epilog task-prolog tasks-per-node thread-spec threads \
          threads-per-core time time-min tmp treewidth tres-bind tres-per-task uid wait wckey",
    two: "",
    files: "",
};
