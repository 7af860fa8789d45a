/* An evolving MPI program from the inside: evoslurm_mpi(3). Link with -levoslurm-mpi -levoslurm.
 *
 *     MPI_Comm comm;
 *     long long i;
 *     struct evos_mpi_change change;
 *     MPI_Init(&argc, &argv);
 *     evos_mpi_begin(NULL, &comm, &i);           // ranks on all nodes; a spawned rank comes in here
 *     for (receive(comm); i < steps; i++) {
 *         iterate(comm, i);
 *         if (evos_mpi_point(comm, i, &change) == EVOS_OK && change.due) {
 *             collect(comm, &change);            // off the ranks whose nodes go
 *             evos_mpi_release(&comm, &change);
 *             if (comm == MPI_COMM_NULL)
 *                 break;                         // this rank's node goes
 *             evos_mpi_spawn(&comm);             // ranks on the nodes that have come
 *             receive(comm);
 *         }
 *     }
 *     if (comm != MPI_COMM_NULL)
 *         evos_mpi_end(&comm);
 *     MPI_Finalize();
 *
 * All calls are collective over comm, and return the same on all of its ranks. A program has one such communicator.
 */
#ifndef EVOSLURM_MPI_H
#define EVOSLURM_MPI_H

#include <evoslurm.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options; zero is the default. */
struct evos_mpi {
	int ranks;      /* on each node that comes (1) */
	double every;   /* shortest time between two looks at the plan, in seconds (1) */
	double ahead;   /* how long before its time a step begins, in seconds (2) */
	double timeout; /* how long ranks, nodes' answers, and ranks' ends are waited for, in seconds (60) */
	double wait;    /* how long evos_mpi_release waits for the nodes of the step, in seconds (0: no limit) */
};

/* What evos_mpi_point found. */
struct evos_mpi_change {
	int due;     /* all ranks are at the same iteration, and must adapt now */
	int number;  /* of the coming step */
	int nodes;   /* of the job after it */
	int leaving; /* nodes that go */
	int leaves;  /* this rank's node goes */
};

/* Begins. A rank that mpiexec started has iteration 0, and ranks are spawned on all nodes that have none. A spawned rank gets
 * the communicator, and the iteration that the others go on with. EVOS_REFUSED: on some nodes no rank could start; the program can go on. */
int evos_mpi_begin(const struct evos_mpi *options, MPI_Comm *comm, long long *iteration);

/* The adaptation point. Every rank calls it once in each iteration. When nothing is due, it costs a comparison, and about
 * once in `every` seconds a message of 24 bytes from rank 0 to each rank. When a change is due, all ranks learn it at the same iteration.
 * EVOS_TIMEOUT: evos_mpi_error() names a rank that did not come to the point in time. Nothing has changed. */
int evos_mpi_point(MPI_Comm comm, long long iteration, struct evos_mpi_change *change);

/* Ends the step: the ranks of the nodes that go leave the communicator (theirs is then MPI_COMM_NULL: they must finalize and
 * exit), and when they have ended, the nodes are given back, and those of the next step are waited for. Free what you made
 * of the communicator before. EVOS_REFUSED: a rank cannot leave; nothing has changed. EVOS_TIMEOUT: nodes have not come within
 * `wait`; the program goes on with those that it has, and a later point is due again. EVOS_DONE: the job keeps its nodes. */
int evos_mpi_release(MPI_Comm *comm, const struct evos_mpi_change *change);

/* Starts ranks on the nodes that have none, and adds them to the communicator. EVOS_REFUSED: on some nodes no rank
 * could start, and evos_mpi_error() names them; the program goes on with what it has. */
int evos_mpi_spawn(MPI_Comm *comm);

/* Ends: spawned ranks leave the communicator (theirs is then MPI_COMM_NULL), and the others wait until these have ended. Call it
 * before MPI_Finalize: Open MPI may fail where ranks that are still connected finalize. */
int evos_mpi_end(MPI_Comm *comm);

/* Why the last call failed; never NULL. */
const char *evos_mpi_error(void);

#ifdef __cplusplus
}
#endif
#endif
