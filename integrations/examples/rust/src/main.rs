//! A ring of ranks that relaxes a line of cells, and reports its time step to ampl.
//!
//!     cargo build --release
//!     mpirun -n 4 target/release/stencil                              # runs as ever
//!     ampl run -c ../job.toml -- mpirun -n 4 target/release/stencil   # one window per time step

use mpi::collective::SystemOperation;
use mpi::point_to_point::send_receive_into_with_tags;
use mpi::traits::{Communicator, CommunicatorCollectives};

const CELLS: usize = 1000;
const STEPS: u32 = 40;

fn relax(cells: &mut [f64], mut left: f64, right: f64) -> f64 {
    let mut change = 0.0;
    for at in 0..cells.len() {
        let next = (left + cells[at] + cells.get(at + 1).copied().unwrap_or(right)) / 3.0;
        change += (next - cells[at]).abs();
        left = cells[at];
        cells[at] = next;
    }
    change
}

fn main() {
    let universe = mpi::initialize().expect("MPI is initialised once");
    let world = universe.world();
    let (rank, ranks) = (world.rank(), world.size());
    let before = world.process_at_rank((rank + ranks - 1) % ranks);
    let after = world.process_at_rank((rank + 1) % ranks);

    // Once, outside of the loop.
    let timestep = ampl::Region::new(c"TIMESTEP");
    let exchange = ampl::Region::new(c"EXCHANGE");
    let cells_done = ampl::Metric::new(c"cells");

    let mut cells = [0.0; CELLS];
    cells[0] = f64::from(rank + 1);
    let mut all = 0.0;
    for _ in 0..STEPS {
        let _inside = timestep.enter();
        let (mut left, mut right) = (0.0, 0.0);
        {
            let _inside = exchange.enter();
            send_receive_into_with_tags(&cells[CELLS - 1], &after, 0, &mut left, &before, 0);
            send_receive_into_with_tags(&cells[0], &before, 1, &mut right, &after, 1);
        }
        let change = relax(&mut cells, left, right);
        cells_done.add(CELLS as f64);
        world.all_reduce_into(&change, &mut all, SystemOperation::sum());
    }
    if rank == 0 {
        println!("change after {STEPS} steps: {all:.6}");
    }
}
