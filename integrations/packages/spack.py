# Spack recipe of the package that `cargo xtask package` makes. Its copy in target/package/spack
# has the version and the checksum. `spack install ampl` is to be started beside the tarball.
import os

from spack.package import *


class Ampl(Package):
    """Monitor of MPI programs: order and counts of all calls, times of sampled ranks."""

    manual_download = True
    url = f"file://{os.getcwd()}/ampl-@VERSION@-x86_64-linux.tar.gz"

    license("MIT OR Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    # The library serves the MPI that a program brings; the command is linked statically.
    # One condition each: of several in one requirement, exactly one is to hold.
    requires("target=x86_64:")
    requires("platform=linux")

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/ampl-{version}-x86_64-linux.tar.gz"

    def install(self, spec, prefix):
        install_tree(".", prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.ampl)("--version")
