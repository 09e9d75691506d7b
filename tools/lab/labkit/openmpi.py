# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The Open MPI that a run uses: its version, and what its launcher calls things.

4.1's launcher takes its parameters from OMPI_MCA_orte_* and the like, 5.0's, which is PRRTE, from
PRTE_MCA_*. A root is the folder of another system that the run happens in (see inroot).
"""

import os

from .spawn import LabError

INROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "inroot")

# The file system cannot tell a lab's hosts apart, their names and IPC namespaces do.
ORTE = {
    "plm_rsh_agent": "{dir}/agent",
    "plm_rsh_no_tree_spawn": "1",           # one hop from h0: the agent is the same everywhere
    "plm_rsh_num_concurrent": "256",        # all at once: they stay attached, see below
    "orte_default_hostfile": "{run}/hostfile",
    "orte_tmpdir_base": "{dir}/tmp",
    # All ranks stay in mpirun's session: Linux schedules sessions as groups, and 6.18 lets groups
    # with many short sleeps starve each other for seconds (docs/decisions.md).
    "orte_leave_session_attached": "1",
    "oob_tcp_if_include": "mgmt0",
    "hwloc_base_binding_policy": "none",    # else the ranks of all hosts share the first core
    "rmaps_base_mapping_policy": "{mapping}",
    "rmaps_base_oversubscribe": "1",
}

PRTE = {
    "plm_ssh_agent": "{dir}/agent",
    "plm_ssh_no_tree_spawn": "1",
    "plm_ssh_num_concurrent": "256",
    "prte_default_hostfile": "{run}/hostfile",
    "prte_tmpdir_base": "{dir}/tmp",
    "prte_if_include": "mgmt0",
    "hwloc_default_binding_policy": "none",
    "rmaps_default_mapping_policy": "{mapping}",
}


def command(argv, root, folders=()):
    """argv, to be run in a root, where the folders are to be seen."""
    if root is None:
        return list(argv)
    there = [f for f in folders if os.path.isdir(f)]
    return ["/bin/sh", INROOT, os.path.abspath(root), *dict.fromkeys(there), "--", *argv]


def major(root=None):
    """First number of the version of mpirun: 5 where it is a front of prterun, which then lies
    beside it, else 4. (To run it to ask takes longer, and fails for some users.)"""
    for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":"):
        there = (root or "") + folder
        if os.access(there + "/mpirun", os.X_OK) or os.path.islink(there + "/mpirun"):
            return 5 if os.access(there + "/prterun", os.X_OK) else 4
    raise LabError("no mpirun%s in PATH; on Debian: apt install openmpi-bin"
                   % (" below " + root if root else ""))


def launcher(version, mapping):
    """Environment variables (name: text with holes) of a launcher of that version."""
    if version < 5:
        names, head = ORTE, "OMPI_MCA_"
    else:
        names, head = PRTE, "PRTE_MCA_"
    if version >= 5 and not mapping.startswith("ppr:"):     # which the hostfile has slots for
        mapping += ":oversubscribe"
    return {head + name: text.replace("{mapping}", mapping) for name, text in names.items()}


def quiet(version):
    """Variables for ranks that no mpirun starts, to the same end as options()."""
    return {} if version < 5 else {"PMIX_MCA_mca_base_component_path": "/"}


def options(version):
    """Options of mpirun for every run. Ranks stay in its session on 5.0, too, whose launcher takes
    that from no variable. What 5.0's is told of Open MPI's components it tells PMIx in the ranks,
    too, which complains of them, unless it is told something else. (The variable of that name would
    crash mpirun on several hosts.)"""
    return [] if version < 5 else ["--leave-session-attached",
                                   "--pmixmca", "mca_base_component_path", "/"]
