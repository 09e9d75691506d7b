# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# r2's state in a process that gdb is attached to (evidence.py): its context, each link, each
# communicator with the calls under way on it, and, last, what it knows of Open MPI's marks. A
# script ends at its first error: a process without r2 says so, and one without ULFM.
echo r2:\n
set print pretty on
set $ctx = (struct r2_ctx *) mca_coll_r2_component.ctx
print *$ctx
set $peer = 0
while $peer < $ctx->core.net.size
    if $ctx->core.net.links[$peer]
        printf "link to %d: ", $peer
        output *$ctx->core.net.links[$peer]
        echo \n
    end
    set $peer = $peer + 1
end
set $name = $ctx->comms.names
while $name
    set $comm = $name->live
    if $comm
        printf "communicator: "
        output *$comm
        set $coll = $comm->active
        while $coll
            printf "\ncall: "
            output *$coll
            set $coll = $coll->next
        end
        echo \n
    end
    set $name = (struct r2_comm_name *) $name->hh.next
end
# Where libraries are optimized when they are linked, a static variable has an entry without a place
# beside the one with it, and gdb takes either.
python
def ulfm(name):
    """A static variable of ulfm.c, the entry that has a place."""
    found = [symbol.value() for symbol in gdb.lookup_static_symbols("r2_ulfm_" + name)]
    found = [value for value in found if not value.is_optimized_out]
    if not found:
        raise gdb.GdbError("there is no r2_ulfm_" + name)
    gdb.set_convenience_variable("ulfm_" + name, found[0])
for name in ("modules", "gone", "gone_us", "ask_us"):
    ulfm(name)
end
set $module = $ulfm_modules
while $module
    printf "watched %s: revoked %d, collectives %d\n", $module->watched->c_name, \
        $module->watched->comm_revoked, $module->watched->coll_revoked
    set $module = $module->next
end
print $ulfm_gone
print $ulfm_gone_us
print $ulfm_ask_us
echo that is all of r2\n
