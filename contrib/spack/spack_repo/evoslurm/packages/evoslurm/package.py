from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack.package import *


class Evoslurm(MakefilePackage):
    """Jobs that change size while they run, planned ahead, on stock Slurm."""

    homepage = "https://github.com/evoslurm/evoslurm"
    git = "https://github.com/evoslurm/evoslurm.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    depends_on("c", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("python@3.9:", type="run")
    depends_on("slurm@20-11:", type="run")
    depends_on("munge", type="run")

    def setup_build_environment(self, env):
        env.set("GOFLAGS", "-modcacherw")

    def build(self, spec, prefix):
        # build-deps is for Debian; Spack has brought what is needed.
        make("build", "-o", "build-deps")

    def install(self, spec, prefix):
        make(
            "install",
            "PREFIX={0}".format(prefix),
            "SYSCONFDIR={0}".format(prefix.etc),
            "LIBEXECDIR={0}".format(prefix.libexec),
            "PYTHONDIR={0}".format(prefix.lib.python),
        )

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.lib.python)
        env.set("EVOSLURM_CONFIG", self.prefix.etc.evoslurm.join("evoslurm.yaml"))
        env.set("EVOSLURM_STRATEGIES_DIR", self.prefix.libexec.evoslurm.strategies)
