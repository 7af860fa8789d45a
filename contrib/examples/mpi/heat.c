/* Heat in a ring, by the halves of each cell's neighbours: an MPI program that goes on while its nodes change. */
#include <evoslurm_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { cells = 5040 };
static double all[cells], *mine; /* all: on rank 0, while ranks change */
static int *counts, *firsts;

/* Gives each rank its part of the ring. */
static void scatter(MPI_Comm comm)
{
	int rank, size;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	counts = realloc(counts, sizeof *counts * (size_t)size);
	firsts = realloc(firsts, sizeof *firsts * (size_t)size);
	for (int r = 0; r < size; r++) {
		firsts[r] = (int)((long)cells * r / size);
		counts[r] = (int)((long)cells * (r + 1) / size) - firsts[r];
	}
	mine = realloc(mine, sizeof *mine * (size_t)(counts[rank] + 2));
	MPI_Scatterv(all, counts, firsts, MPI_DOUBLE, mine + 1, counts[rank], MPI_DOUBLE, 0, comm);
}

static void gather(MPI_Comm comm)
{
	int rank;
	MPI_Comm_rank(comm, &rank);
	MPI_Gatherv(mine + 1, counts[rank], MPI_DOUBLE, all, counts, firsts, MPI_DOUBLE, 0, comm);
}

static void iterate(MPI_Comm comm)
{
	int rank, size;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	int n = counts[rank], left = (rank + size - 1) % size, right = (rank + 1) % size;
	MPI_Sendrecv(&mine[n], 1, MPI_DOUBLE, right, 0, &mine[0], 1, MPI_DOUBLE, left, 0, comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv(&mine[1], 1, MPI_DOUBLE, left, 1, &mine[n + 1], 1, MPI_DOUBLE, right, 1, comm, MPI_STATUS_IGNORE);
	double before = mine[0];
	for (int i = 1; i <= n; i++) {
		double here = mine[i];
		mine[i] = here / 2 + (before + mine[i + 1]) / 4;
		before = here;
	}
	usleep(getenv("PAUSE") ? (unsigned)atoi(getenv("PAUSE")) : 0); /* the work */
}

/* The state on disk, for an MPI that cannot start ranks: mpiexec then starts all of them again in the next step. */
static long long load(const char *name)
{
	long long i = 0;
	FILE *f = fopen(name, "r");
	if (f && (fread(&i, sizeof i, 1, f) != 1 || fread(all, sizeof all, 1, f) != 1))
		abort();
	if (f)
		fclose(f);
	return i;
}

static void save(const char *name, long long i)
{
	FILE *f = fopen("heat.new", "w");
	if (!f || fwrite(&i, sizeof i, 1, f) != 1 || fwrite(all, sizeof all, 1, f) != 1 || fclose(f) || rename("heat.new", name))
		abort();
}

/* Says on rank 0 what went wrong; the program goes on. */
static void note(MPI_Comm comm, int rc)
{
	int rank = -1;
	if (comm != MPI_COMM_NULL)
		MPI_Comm_rank(comm, &rank);
	if (rc != EVOS_OK && rank == 0)
		fprintf(stderr, "%s\n", evos_mpi_error());
}

int main(int argc, char **argv)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	struct evos_mpi_change change = {0};
	long long i = 0, end = atoll(argv[1]);
	const char *file = argc > 2 ? argv[2] : NULL; /* of a program that is started again in each step */
	int rank, size;
	double sum = 0;
	MPI_Init(&argc, &argv);
	for (int k = 0; k < cells; k++)
		all[k] = k < cells / 3;
	if (file)
		i = load(file);
	else
		note(comm, evos_mpi_begin(NULL, &comm, &i));
	for (scatter(comm); i < end; i++) {
		iterate(comm);
		note(comm, evos_mpi_point(comm, i, &change));
		if (!change.due)
			continue;
		gather(comm);
		if (file)
			break;
		note(comm, evos_mpi_release(&comm, &change));
		if (comm == MPI_COMM_NULL) /* this rank's node goes */
			return MPI_Finalize();
		note(comm, evos_mpi_spawn(&comm));
		scatter(comm);
		MPI_Comm_rank(comm, &rank);
		MPI_Comm_size(comm, &size);
		if (rank == 0)
			printf("iteration %lld: %d ranks\n", i + 1, size), fflush(stdout);
	}
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	if (!change.due)
		gather(comm);
	for (int k = 0; k < cells; k++)
		sum += all[k] * (k + 1);
	if (rank == 0 && file)
		save(file, i < end ? i + 1 : i);
	if (rank == 0)
		printf("%s after %lld iterations, %d ranks: %a\n", i < end ? "saved" : "done", i < end ? i + 1 : i, size, sum);
	note(comm, evos_mpi_end(&comm));
	return MPI_Finalize();
}
