#!/usr/bin/env bash
# A real Slurm of one node, this one, for one command line: `one-node.sh DIRECTORY COMMAND…`. It needs root, and Debian's packages
# slurmctld, slurmd, slurm-client and munge. Everything that it makes is in DIRECTORY, and ends with the command.
# A second node, HOST-second, is this machine, too: only jobs that need two nodes, such as heterogeneous ones, are given it.
# Exit status 77, with the reason, where Slurm does not run here.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: one-node.sh DIRECTORY COMMAND..." >&2; exit 2; }
mkdir -p "$1"
at=$(cd "$1" && pwd); shift
for program in munged slurmctld slurmd sbatch; do
    PATH=$PATH:/usr/sbin command -v $program > /dev/null ||
        { echo "SKIPPED: $program is missing (apt-get install slurmctld slurmd slurm-client munge)" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "SKIPPED: Slurm's processes need root here" >&2; exit 77; }
PATH=$PATH:/usr/sbin
# munged wants no directory above its socket that others may write.
secret=$(mktemp -d /run/ampl-munge-XXXXXX)
started=()
finish() {
    [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2> /dev/null || true
    wait 2> /dev/null || true
    rm -rf "$secret"
}
trap finish EXIT
chmod 755 "$secret"
(umask 077 && dd if=/dev/urandom of="$secret/key" bs=128 count=1 status=none)
munged --foreground --force --key-file="$secret/key" --socket="$secret/socket" --pid-file="$secret/pid" \
    --log-file="$secret/log" --seed-file="$secret/seed" > "$at/munged.out" 2>&1 & started+=($!)
host=$(hostname -s)
# Three ports of its own, below those that the system gives to connections (from 32768 on).
port=$((20000 + $$ % 4000 * 3))
cat > "$at/slurm.conf" << END
ClusterName=ampl
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$secret/socket
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/spool-%n
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$(nproc) State=UNKNOWN
NodeName=$host-second NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=$(nproc) Weight=9 State=UNKNOWN
PartitionName=all Nodes=$host,$host-second Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
END
mkdir -p "$at/state" "$at/spool-$host" "$at/spool-$host-second"
export SLURM_CONF=$at/slurm.conf
slurmctld -D -f "$SLURM_CONF" > "$at/slurmctld.out" 2>&1 & started+=($!)
for node in "$host" "$host-second"; do
    slurmd -D -f "$SLURM_CONF" -N "$node" > "$at/$node.out" 2>&1 & started+=($!)
done
for _ in $(seq 150); do
    sinfo -h -o %t 2> /dev/null | grep -q '^\(idle\|mix\)' && break
    sleep 0.2
done
if ! sinfo -h -o %t 2> /dev/null | grep -q '^\(idle\|mix\)'; then
    echo "SKIPPED: Slurm does not run here:" >&2
    tail -n 3 "$at"/*.out >&2
    exit 77
fi
"$@"
