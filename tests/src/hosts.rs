//! Parts of one machine that stand for other machines: with memory, names, clocks and networks of their own.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::job::Mpi;
use crate::place::Scratch;
use crate::process;

/// Two hosts on this machine: names, networks, memory for journals and monotonic clocks of their own. They share files
/// and processes.
#[derive(Debug)]
pub struct Hosts {
    /// The process that holds each host's namespaces, and its number as seen from here.
    holders: Vec<(Child, String)>,
    /// The second host's ssh server.
    server: Option<Child>,
    scratch: Scratch,
}

/// Time for what takes a moment.
const LIMIT: Duration = Duration::from_secs(30);

/// Names of the hosts.
pub const NAMES: [&str; 2] = ["ampl-one", "ampl-two"];

impl Hosts {
    /// Both hosts; `None`, with a message, where this machine has no namespaces for us.
    pub fn start() -> Option<Self> {
        let mut hosts = Self { holders: Vec::new(), server: None, scratch: Scratch::new("hosts") };
        match hosts.begin() {
            Ok(()) => Some(hosts),
            Err(error) => {
                eprintln!(
                    "SKIPPED: no two hosts can be made here (root can, with util-linux and iproute2): {error}"
                );
                None
            }
        }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        let names =
            self.scratch.write("hosts", "127.0.0.1 localhost\n10.77.0.1 ampl-one\n10.77.0.2 ampl-two\n");
        for (number, name) in NAMES.iter().enumerate() {
            let ready = self.scratch.path().join(name);
            let script = "echo $1 > /proc/sys/kernel/hostname && mount -t tmpfs ampl-test /dev/shm \
                && mount --bind $2 /etc/hosts && echo $$ > $3.new && mv $3.new $3 && exec sleep 600";
            let mut command = Command::new("unshare");
            command.args(["--net", "--uts", "--mount", "--time", "--monotonic"]);
            command.arg((1000 * number).to_string()).args([
                "--fork",
                "--kill-child",
                "sh",
                "-c",
                script,
                "sh",
            ]);
            command.args([name.as_ref(), names.as_os_str(), ready.as_os_str()]).stdin(Stdio::null());
            let mut child = command.stdout(Stdio::null()).spawn()?;
            let until = Instant::now() + LIMIT;
            while !ready.exists() && Instant::now() < until && child.try_wait()?.is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let holder = std::fs::read_to_string(&ready).unwrap_or_default().trim().to_owned();
            self.holders.push((child, holder));
            if self.holders[number].1.is_empty() {
                return Err(std::io::Error::other("its namespaces are refused"));
            }
        }
        let [one, two] = [0, 1].map(|host: usize| self.holders[host].1.clone());
        succeed(&[
            "ip", "link", "add", "veth1", "netns", &one, "type", "veth", "peer", "name", "veth2", "netns",
            &two,
        ])?;
        for (number, holder) in [one, two].iter().enumerate() {
            let (address, device) = (format!("10.77.0.{}/24", number + 1), format!("veth{}", number + 1));
            let net = |words: &[&str]| succeed(&[&["nsenter", "-t", holder, "-n", "ip"][..], words].concat());
            net(&["addr", "add", &address, "dev", &device])?;
            net(&["link", "set", &device, "up"])?;
            net(&["link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// Command line that starts `words` on host `number`.
    pub fn on(&self, number: usize, words: &[OsString]) -> Vec<OsString> {
        let holder = &self.holders[number].1;
        let enter = ["nsenter", "-t", holder, "-n", "-u", "-m", "-T", "--wd=."].map(OsString::from);
        [&enter[..], words].concat()
    }

    /// Command line before one that is to start on the second host, as one text.
    pub fn via(&self) -> String {
        let words = self.on(1, &[]);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// Command line before one that is to start on the host of that name, as `--via` takes it; [`launch`](Self::launch)
    /// makes it.
    pub fn way(&self) -> String {
        format!("{} {{host}}", self.scratch.path().join("agent").display())
    }

    /// Starts an ssh server on the second host, and lets processes of the first in by a key of their own.
    ///
    /// # Panics
    /// With the reason when it does not start: the machine lacks openssh-server.
    pub fn serve_ssh(&mut self) {
        let at = |name: &str| self.scratch.path().join(name);
        let script = "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N '' -f host-key \
            && mkdir -p /run/sshd";
        let mut keys = Command::new("sh");
        process::run(keys.args(["-c", script]).current_dir(self.scratch.path()), LIMIT).success();
        let settings = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n",
            at("host-key").display(),
            at("key.pub").display()
        );
        let client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n",
            at("key").display()
        );
        let (settings, client) =
            (self.scratch.write("sshd_config", &settings), self.scratch.write("ssh_config", &client));
        let bind = ["mount".into(), "--bind".into(), client.into(), "/etc/ssh/ssh_config".into()];
        let bind = self.on(0, &bind);
        process::run(Command::new(&bind[0]).args(&bind[1..]), LIMIT).success();
        let serve = ["/usr/sbin/sshd".into(), "-D".into(), "-e".into(), "-f".into(), settings.into()];
        let serve = self.on(1, &serve);
        let mut server = Command::new(&serve[0]);
        server.args(&serve[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(server.spawn().expect("nsenter"));
        let ask = self.on(0, &["ssh", "-o", "BatchMode=yes", NAMES[1], "true"].map(OsString::from));
        let until = Instant::now() + LIMIT;
        loop {
            let asked = process::run(Command::new(&ask[0]).args(&ask[1..]), LIMIT);
            match asked.status.success() {
                true => return,
                false if Instant::now() > until => panic!("no ssh server: {}", asked.stderr),
                false => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// The launcher of `mpi` with `each` ranks on each host, without the program; it is to be started on the first.
    pub fn launch(&self, mpi: Mpi, each: u32) -> Vec<OsString> {
        let [one, two] = [0, 1].map(|host: usize| &self.holders[host].1);
        // MPICH's launcher has an option for the real ssh before the host.
        let agent = format!(
            "#!/bin/sh\n[ \"$1\" = -x ] && shift\ncase $1 in {}) holder={one};; *) holder={two};; esac\nshift\n\
             exec nsenter -t $holder -n -u -m -T sh -c \"$*\"\n",
            NAMES[0]
        );
        let agent = self.scratch.write("agent", &agent);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&agent, mode).expect("the scratch directory is ours");
        let hosts = NAMES.map(|name| format!("{name}:{each}")).join(",");
        let mut words: Vec<OsString> = mpi.launch(2 * each);
        if mpi == Mpi::OpenMpi {
            let net = "10.77.0.0/24";
            words.extend(["--host", &hosts, "--mca", "plm_rsh_agent"].map(OsString::from));
            words.push(agent.into());
            let settings = [["btl", "tcp,self"], ["btl_tcp_if_include", net], ["oob_tcp_if_include", net]];
            let settings = settings.iter().chain(&[["pml", "ob1"]]);
            words.extend(settings.flat_map(|[name, value]| ["--mca", name, value]).map(OsString::from));
        } else {
            words.extend(["-hosts", &hosts, "-launcher", "ssh", "-launcher-exec"].map(OsString::from));
            words.push(agent.into());
        }
        words
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // The namespaces end with their holders.
        for child in self.server.iter_mut().chain(self.holders.iter_mut().map(|(child, _)| child)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn succeed(words: &[&str]) -> std::io::Result<()> {
    let done = Command::new(words[0]).args(&words[1..]).output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("{words:?}: {}", String::from_utf8_lossy(&done.stderr)))),
    }
}

/// Command line that starts `words` with a file system of `size` mounted on `place` for them alone; `None`, with a
/// message, where that fails.
pub fn on_small(size: &str, place: &Path, words: &[OsString]) -> Option<Vec<OsString>> {
    let script = "mount -t tmpfs -o size=$0 ampl-test \"$1\" && shift && exec \"$@\"";
    let namespace = |words: &[OsString]| -> Vec<OsString> {
        let start = ["unshare", "--mount", "sh", "-c", script, size].map(OsString::from);
        [&start[..], &[place.into()], words].concat()
    };
    let probe = namespace(&["true".into()]);
    let made = Command::new(&probe[0]).args(&probe[1..]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("SKIPPED: no file system can be mounted in a namespace here (root can)");
        return None;
    }
    Some(namespace(words))
}
