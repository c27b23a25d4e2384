//! The parts of the program around its calls.

use std::fmt::Write as _;

use ampl_analysis::logical::{Formulas, Grid};

use super::body::Body;

/// The whole program.
pub fn whole(body: &Body<'_>, formulas: &Formulas, run: &str) -> String {
    let ranks = body.calls.program.ranks;
    let helpers = body.out.helpers;
    let mut text = format!(
        "/* Communication of the run {}, {}. Written by ampl skeleton.
 * Build and run: mpicc -o skeleton FILE.c && mpiexec -n {ranks} ./skeleton
 * Calls of PMPI functions are the skeleton's own; all others are those of the run. */
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>

enum {{ RANKS = {ranks} }};
static int rank;
",
        run.replace("*/", "* /"),
        match helpers.computes {
            true => "with waits in place of its computation",
            false => "without its computation",
        }
    );
    variables(&mut text, body);
    text += &body.out.tables.text();
    text.push('\n');
    if helpers.coordinates
        && let Some(grid) = &formulas.grid
    {
        coordinates(&mut text, body, grid);
    }
    if helpers.computes {
        text += COMPUTE;
    }
    if helpers.local {
        text += LOCAL;
    }
    if helpers.gather {
        text += GATHER;
    }
    if helpers.lists {
        text += &body.lists.text();
    }
    if helpers.nothing {
        text += NOTHING;
    }
    begin(&mut text, body);
    let _ = write!(text, "int main(int argc, char **argv)\n{{\n{}    return 0;\n}}\n", body.text);
    text
}

/// True where the body names something.
fn names(body: &Body<'_>, word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    body.text.match_indices(word).any(|(at, _)| {
        !body.text[..at].ends_with(is_part) && !body.text[at + word.len()..].starts_with(is_part)
    })
}

fn variables(text: &mut String, body: &Body<'_>) {
    let pointers: Vec<&str> =
        ["in", "out", "attached"].into_iter().filter(|name| names(body, name)).collect();
    if !pointers.is_empty() {
        let all: Vec<String> = pointers.iter().map(|name| format!("*{name}")).collect();
        let _ = writeln!(text, "static char {};", all.join(", "));
    }
    if names(body, "sink") {
        *text += "static long long sink[8192];\n";
    }
    if body.variables.statuses > 0 {
        let _ = writeln!(text, "static MPI_Status statuses[{}];", body.variables.statuses);
    }
    if body.out.helpers.status {
        *text +=
            "/* In place of all statuses that calls read: of no elements. */\nstatic MPI_Status status;\n";
    }
    if body.out.helpers.flag {
        *text += "static int flag;\n";
    }
    let requests = body.variables.requests.len();
    if requests > 0 {
        let _ = writeln!(text, "static MPI_Request request[{requests}];");
    }
    if body.out.helpers.no_request {
        *text += "static MPI_Request no_request;\n";
    }
    if body.out.helpers.gather {
        let _ = writeln!(text, "static MPI_Request gathered[{}];", body.variables.gathered);
    }
    for (kind, number) in &body.variables.objects {
        let c_type = match *kind {
            "comm" => "MPI_Comm",
            "type" => "MPI_Datatype",
            "op" => "MPI_Op",
            "group" => "MPI_Group",
            "info" => "MPI_Info",
            _ => "MPI_Errhandler",
        };
        let _ = writeln!(text, "static {c_type} {kind}[{number}];");
    }
}

fn coordinates(text: &mut String, body: &Body<'_>, grid: &Grid) {
    let helpers = body.out.helpers;
    let list = |of: &dyn Fn(usize) -> u32| {
        (0..grid.axes.len()).map(|at| of(at).to_string()).collect::<Vec<_>>().join(", ")
    };
    let axes = grid.axes.len();
    let sizes: Vec<String> = grid.axes.iter().map(|axis| axis.size.to_string()).collect();
    let _ = write!(
        text,
        "/* The ranks are a grid of {}: size of each axis, and distance of neighbours along it. */
enum {{ AXES = {axes} }};
static const int size[AXES] = {{{}}}, stride[AXES] = {{{}}};
",
        sizes.join(" x "),
        list(&|at| grid.axes[at].size),
        list(&|at| grid.axes[at].stride),
    );
    let periodic = grid.axes.iter().any(|axis| axis.periodic);
    if helpers.shift && periodic {
        let _ = writeln!(
            text,
            "static const int periodic[AXES] = {{{}}};",
            list(&|at| grid.axes[at].periodic.into())
        );
    }
    text.push_str(
        "\nstatic int coordinate(int axis)\n{\n    return rank / stride[axis] % size[axis];\n}\n\n",
    );
    if helpers.shift {
        let steps: Vec<String> = (0..axes).map(|at| format!("int step_{at}")).collect();
        let names: Vec<String> = (0..axes).map(|at| format!("step_{at}")).collect();
        let wrap = if periodic {
            "        if (periodic[axis])\n            to = (to % size[axis] + size[axis]) % size[axis];\n"
        } else {
            ""
        };
        let _ = write!(
            text,
            "/* The rank at that distance along the axes; none outside. */
static int shift({})
{{
    const int step[AXES] = {{{}}};
    int there = rank;
    for (int axis = 0; axis < AXES; axis++) {{
        int here = coordinate(axis), to = here + step[axis];
{wrap}        if (to < 0 || to >= size[axis])
            return MPI_PROC_NULL;
        there += (to - here) * stride[axis];
    }}
    return there;
}}

",
            steps.join(", "),
            names.join(", ")
        );
    }
    if helpers.flip {
        *text += "/* The rank whose coordinate differs in these bits. */
static int flip(int axis, int bits)
{
    int here = coordinate(axis);
    return rank + ((here ^ bits) - here) * stride[axis];
}

";
    }
    if helpers.transposed {
        *text += "/* The rank at the place with the first two coordinates exchanged. */
static int transposed(void)
{
    return rank + (coordinate(1) - coordinate(0)) * (stride[0] - stride[1]);
}

";
    }
}

const COMPUTE: &str = "/* Keeps the processor busy for the mean time that all ranks were outside of MPI before this call. It is measured where
 * the times of calls were kept. Elsewhere the sum that is known of each rank is divided among its calls. */
static void compute(double ns)
{
    const double begun = PMPI_Wtime();
    while (PMPI_Wtime() - begun < ns * 1e-9)
        ;
}

";

const LOCAL: &str = "/* The rank in a communicator that a rank of the world has; of an intercommunicator, in the other group. */
static int local(MPI_Comm comm, int world)
{
    MPI_Group all, own;
    int inter, found = world;
    if (world < 0)
        return world;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_group(comm, &own);
    else
        PMPI_Comm_group(comm, &own);
    PMPI_Group_translate_ranks(all, 1, &world, own, &found);
    PMPI_Group_free(&all);
    PMPI_Group_free(&own);
    return found;
}

";

const GATHER: &str = "/* Copies requests side by side for one call, and back. */
static void gather(int count, const int *which)
{
    for (int at = 0; at < count; at++)
        gathered[at] = which[at] < 0 ? MPI_REQUEST_NULL : request[which[at]];
}

static void scatter(int count, const int *which)
{
    for (int at = 0; at < count; at++)
        if (which[at] >= 0)
            request[which[at]] = gathered[at];
}

";

const NOTHING: &str = "/* In place of the program's own operations. */
static void nothing(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)from, (void)to, (void)count, (void)type;
}

";

/// The function that is called once MPI has begun.
fn begin(text: &mut String, body: &Body<'_>) {
    let pointers: Vec<&str> =
        ["in", "out", "attached"].into_iter().filter(|name| names(body, name)).collect();
    if !pointers.is_empty() {
        *text += "/* Addresses for data of any size; memory is taken where MPI writes. */
static char *room(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *found = mmap(NULL, (size_t)1 << 34, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (found == MAP_FAILED) {
        fprintf(stderr, \"no room for data\\n\");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return found + ((size_t)1 << 33);
}

";
    }
    *text += "static void begin(void)
{
    int ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != RANKS) {
        fprintf(stderr, \"this skeleton is for %d ranks, not for %d\\n\", RANKS, ranks);
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
";
    for name in pointers {
        let _ = writeln!(text, "    {name} = room();");
    }
    if body.out.helpers.no_request {
        *text += "    no_request = MPI_REQUEST_NULL;\n";
    }
    if !body.variables.requests.is_empty() {
        *text += "    for (int at = 0; at < (int)(sizeof request / sizeof *request); at++)\n        \
                  request[at] = MPI_REQUEST_NULL;\n";
    }
    *text += "}\n\n";
}
