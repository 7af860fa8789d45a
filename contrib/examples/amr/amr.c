/* Two waves enter a square as one front, part, and leave it again: an adaptive mesh by p4est, with its cells where the front is.
 * amr NAME ITERATIONS [LEVEL] goes on from the last good checkpoint NAME.ITERATIONS, on any number of ranks, and writes the next.
 * All that is done to a cell has one order, so the mesh and its values are the same on any number of ranks, bit by bit. */
#include <glob.h>
#include <math.h>
#include <p4est_bits.h>
#include <p4est_extended.h>
#include <p4est_iterate.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { VERSION = 1, COARSE = 3, FINEST = 12, ADAPT = 4, PRINT = 64 }; /* of checkpoints; levels; iterations between meshes, and lines */
static const double END = 1.3, WIDTH = 0.08, HEIGHT = 0.15, BEND = 0.5; /* duration; half the front's size; how fast waves part */
static const double ROUGH = 0.01, SMOOTH = 0.0025, TOLERANCE = 1e-12;   /* jumps to refine and coarsen at; of mass and error */

typedef struct { double u[2], slope[2][2], jump; } cell_t; /* two waves, their slopes, the largest difference to a neighbour */
typedef struct { double old[2], rise[4][2], flux[4][2][2]; } work_t; /* of a local cell, by face (and half of it) and wave */
typedef struct { /* what a checkpoint's head says */
	int level, done;
	long long cells, least, most;
	double mass, entered, error, at; /* entered: through the boundary, less what left; at: Unix time */
} head_t;

static p4est_t *mesh;
static p4est_connectivity_t *square;
static p4est_ghost_t *ghost;
static cell_t *ghosts;
static work_t *work;
static double now_t, entered; /* the time of the equation; of this rank's boundary */
static head_t run;
static int rank, stage;

static double clock_now(void)
{
	struct timeval t;
	gettimeofday(&t, NULL);
	return t.tv_sec + 1e-6 * t.tv_usec;
}

static void velocity(int wave, double *v)
{
	v[0] = 1;
	v[1] = (wave ? -BEND : BEND) * now_t;
}

static double bump(double x) { return fabs(x) < 1 ? (1 - x * x) * (1 - x * x) : 0; }

/* exact returns a wave's solution: it only moves. */
static double exact(int wave, double x, double y)
{
	double bent = (wave ? -BEND : BEND) * now_t * now_t / 2;
	return bump((x + WIDTH - now_t) / WIDTH) * bump((y - 0.5 - bent) / HEIGHT);
}

static double size_of(const p4est_quadrant_t *q) { return ldexp(1, -q->level); }

static void centre(const p4est_quadrant_t *q, double *x)
{
	x[0] = q->x / (double)P4EST_ROOT_LEN + size_of(q) / 2;
	x[1] = q->y / (double)P4EST_ROOT_LEN + size_of(q) / 2;
}

/* part returns a quadrant of a face's side, its cell, and its index here, or -1. */
static p4est_quadrant_t *part(p4est_iter_face_side_t *s, int half, cell_t **cell, p4est_locidx_t *index)
{
	p4est_quadrant_t *q = s->is_hanging ? s->is.hanging.quad[half] : s->is.full.quad;
	int far = s->is_hanging ? s->is.hanging.is_ghost[half] : s->is.full.is_ghost;
	p4est_locidx_t id = s->is_hanging ? s->is.hanging.quadid[half] : s->is.full.quadid;
	*cell = far ? &ghosts[id] : (cell_t *)q->p.user_data;
	*index = far ? -1 : id;
	return q;
}

/* middle returns the middle of a quadrant's face, or of a half of it. */
static void middle(const p4est_quadrant_t *q, int face, double *x)
{
	centre(q, x);
	x[face / 2] += (face % 2 ? 0.5 : -0.5) * size_of(q);
}

/* rises finds how steeply both waves rise towards each neighbour. */
static void rises(p4est_iter_face_info_t *info, void *unused)
{
	p4est_iter_face_side_t *sides = (p4est_iter_face_side_t *)info->sides.array;
	int n = info->sides.elem_count;
	for (int i = 0; i < n; i++)
		for (int half = 0; half <= sides[i].is_hanging; half++) {
			cell_t *c, *a, *b;
			p4est_locidx_t id, ignored;
			p4est_quadrant_t *q = part(&sides[i], half, &c, &id);
			if (id < 0)
				continue;
			double h = size_of(q), x[2], v[2];
			for (int k = 0; k < 2; k++) {
				double *rise = &work[id].rise[sides[i].face][k];
				if (n == 2) {
					p4est_quadrant_t *other = part(&sides[1 - i], 0, &a, &ignored);
					part(&sides[1 - i], sides[1 - i].is_hanging, &b, &ignored);
					*rise = ((a->u[k] + b->u[k]) / 2 - c->u[k]) / ((h + size_of(other)) / 2);
					continue;
				}
				middle(q, sides[i].face, x);
				velocity(k, v);
				int leaves = v[sides[i].face / 2] * (sides[i].face % 2 ? 1 : -1) > 0;
				*rise = leaves ? 0 : (exact(k, x[0], x[1]) - c->u[k]) / (h / 2);
			}
		}
}

/* fluxes finds what flows through each face, or half of one, from the side where it comes from. */
static void fluxes(p4est_iter_face_info_t *info, void *dt)
{
	p4est_iter_face_side_t *sides = (p4est_iter_face_side_t *)info->sides.array;
	int n = info->sides.elem_count, axis = sides[0].face / 2, hanging = sides[0].is_hanging || (n == 2 && sides[1].is_hanging);
	for (int half = 0; half <= hanging; half++) {
		cell_t *c[2] = {NULL, NULL}; /* the left or lower one, and the other */
		p4est_locidx_t id[2] = {-1, -1};
		double x[2][2], at[2], h = 2, v[2];
		for (int i = 0; i < n; i++) {
			int right = !(sides[i].face % 2);
			p4est_quadrant_t *q = part(&sides[i], half, &c[right], &id[right]);
			centre(q, x[right]);
			if (size_of(q) < h) {
				h = size_of(q);
				middle(q, sides[i].face, at);
			}
		}
		for (int k = 0; k < 2; k++) {
			velocity(k, v);
			int from = v[axis] > 0 ? 0 : 1;
			double value = c[from] ? c[from]->u[k] + c[from]->slope[k][0] * (at[0] - x[from][0]) + c[from]->slope[k][1] * (at[1] - x[from][1])
					       : exact(k, at[0], at[1]);
			double flux = v[axis] * value * h;
			if (n == 1)
				entered += (c[0] ? -1 : 1) * flux * *(double *)dt / 2;
			for (int i = 0; i < n; i++) {
				int right = !(sides[i].face % 2);
				if (id[right] >= 0)
					work[id[right]].flux[sides[i].face][sides[i].is_hanging ? 0 : half][k] = flux;
			}
		}
	}
}

static double minmod(double a, double b) { return a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b; }

/* incline gives a cell the smaller of its rises to both sides. */
static void incline(p4est_iter_volume_info_t *info, void *unused)
{
	cell_t *c = info->quad->p.user_data;
	work_t *w = &work[info->quadid];
	c->jump = 0;
	for (int k = 0; k < 2; k++) {
		for (int face = 0; face < 4; face++)
			c->jump = fmax(c->jump, fabs(w->rise[face][k]) * size_of(info->quad));
		for (int axis = 0; axis < 2; axis++)
			c->slope[k][axis] = minmod(-w->rise[2 * axis][k], w->rise[2 * axis + 1][k]);
	}
	memset(w->flux, 0, sizeof w->flux);
}

/* advance is a stage of Heun's. */
static void advance(p4est_iter_volume_info_t *info, void *dt)
{
	cell_t *c = info->quad->p.user_data;
	work_t *w = &work[info->quadid];
	double h = size_of(info->quad);
	for (int k = 0; k < 2; k++) {
		double net = w->flux[0][0][k] + w->flux[0][1][k] - w->flux[1][0][k] - w->flux[1][1][k] + w->flux[2][0][k] + w->flux[2][1][k] -
			     w->flux[3][0][k] - w->flux[3][1][k];
		double next = c->u[k] + *(double *)dt / (h * h) * net;
		if (stage == 0)
			w->old[k] = c->u[k];
		c->u[k] = stage == 0 ? next : (w->old[k] + next) / 2;
	}
}

static void inclines(void)
{
	p4est_ghost_exchange_data(mesh, ghost, ghosts);
	p4est_iterate(mesh, ghost, NULL, NULL, rises, NULL);
	p4est_iterate(mesh, ghost, NULL, incline, NULL, NULL);
}

static int rough(p4est_t *p, p4est_topidx_t tree, p4est_quadrant_t *q)
{
	return q->level < run.level && ((cell_t *)q->p.user_data)->jump > ROUGH;
}

static int smooth(p4est_t *p, p4est_topidx_t tree, p4est_quadrant_t *family[])
{
	for (int i = 0; i < 4; i++)
		if (family[i]->level <= COARSE || ((cell_t *)family[i]->p.user_data)->jump > SMOOTH)
			return 0;
	return 1;
}

/* replace keeps the mass: children get their parent's values by its slopes, a parent its children's mean. */
static void replace(p4est_t *p, p4est_topidx_t tree, int outs, p4est_quadrant_t *out[], int ins, p4est_quadrant_t *in[])
{
	double x[2], y[2];
	for (int i = 0; i < ins; i++) {
		cell_t *to = in[i]->p.user_data, *from = out[0]->p.user_data;
		*to = *from;
		centre(in[i], x);
		centre(out[0], y);
		for (int k = 0; k < 2; k++)
			if (outs == 1)
				to->u[k] += from->slope[k][0] * (x[0] - y[0]) + from->slope[k][1] * (x[1] - y[1]);
			else {
				cell_t *b = out[1]->p.user_data, *c = out[2]->p.user_data, *d = out[3]->p.user_data;
				to->u[k] = (from->u[k] + b->u[k] + c->u[k] + d->u[k]) / 4;
			}
	}
}

static void zero(p4est_t *p, p4est_topidx_t tree, p4est_quadrant_t *q) { memset(q->p.user_data, 0, sizeof(cell_t)); }

static void forget(void)
{
	if (ghost)
		p4est_ghost_destroy(ghost);
	free(ghosts);
	free(work);
}

/* share gives each rank as many cells, no family on two of them, and what it needs of the neighbours'. */
static void share(void)
{
	p4est_partition(mesh, 1, NULL);
	forget();
	ghost = p4est_ghost_new(mesh, P4EST_CONNECT_FACE);
	ghosts = calloc(ghost->ghosts.elem_count + 1, sizeof *ghosts);
	work = calloc(mesh->local_num_quadrants + 1, sizeof *work);
	run.cells = mesh->global_num_quadrants;
	run.least = SC_MIN(run.least, run.cells);
	run.most = SC_MAX(run.most, run.cells);
}

static void adapt(void)
{
	inclines();
	p4est_refine_ext(mesh, 0, run.level, rough, NULL, replace);
	p4est_coarsen_ext(mesh, 0, 0, smooth, NULL, replace);
	p4est_balance_ext(mesh, P4EST_CONNECT_FACE, NULL, replace);
	share();
}

static void iterate(double dt)
{
	for (stage = 0; stage < 2; stage++) {
		now_t = (run.done + stage) * dt;
		inclines();
		p4est_ghost_exchange_data(mesh, ghost, ghosts);
		p4est_iterate(mesh, ghost, &dt, NULL, fluxes, NULL);
		p4est_iterate(mesh, ghost, &dt, advance, NULL, NULL);
	}
	now_t = ++run.done * dt;
}

static void weigh(p4est_iter_volume_info_t *info, void *sums)
{
	cell_t *c = info->quad->p.user_data;
	double h = size_of(info->quad), x[2];
	centre(info->quad, x);
	for (int k = 0; k < 2; k++) {
		((double *)sums)[0] += c->u[k] * h * h;
		((double *)sums)[1] += fabs(c->u[k] - exact(k, x[0], x[1])) * h * h;
	}
}

/* measure finds the mass, the error, and what came in by the boundary. */
static void measure(double *mass, double *error)
{
	double mine[3] = {0, 0, entered}, all[3];
	p4est_iterate(mesh, ghost, mine, weigh, NULL, NULL);
	MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	*mass = all[0], *error = all[1];
	run.entered += all[2], entered = 0;
}

/* sum returns the FNV-1a hash of a file and its size. */
static unsigned long long sum(const char *name, long long *size)
{
	unsigned long long h = 14695981039346656037u;
	FILE *f = fopen(name, "rb");
	*size = 0;
	for (int c; f && (c = getc(f)) != EOF; ++*size)
		h = (h ^ c) * 1099511628211u;
	if (f)
		fclose(f);
	return h;
}

#define HEAD "level %d iterations %d cells %lld bytes %lld sum %llx mass %la entered %la error %la least %lld most %lld at %lf\n"

/* good reports whether a checkpoint can be used, by its head, or prints why not. */
static int good(const char *name, head_t *h)
{
	char head[4096];
	int version = 0, n = 0;
	long long bytes = 0, size;
	unsigned long long want = 0, hash;
	snprintf(head, sizeof head, "%s.head", name);
	FILE *f = fopen(head, "r");
	if (f && fscanf(f, "amr version %d\n", &version) == 1 && version == VERSION)
		n = fscanf(f, HEAD, &h->level, &h->done, &h->cells, &bytes, &want, &h->mass, &h->entered, &h->error, &h->least, &h->most, &h->at);
	if (f)
		fclose(f);
	if (version && version != VERSION)
		printf("%s is refused: version %d wrote it, this is version %d\n", name, version, VERSION);
	else if (n != 11)
		printf("%s is refused: its head is cut short\n", name);
	else if (h->done != atoi(strrchr(name, '.') + 1))
		printf("%s is refused: its head is of iteration %d\n", name, h->done);
	else if (h->level != run.level)
		printf("%s is refused: its level is %d, and %d is asked for\n", name, h->level, run.level);
	else if ((hash = sum(name, &size)), size != bytes)
		printf("%s is refused: it has %lld of %lld bytes\n", name, size, bytes);
	else if (hash != want)
		printf("%s is refused: its bytes changed\n", name);
	else
		return 1;
	return 0;
}

/* load goes on from the last good checkpoint. Without any it begins; where all are bad, it ends the run. */
static void load(const char *name)
{
	char pattern[4096], found[4096] = "";
	head_t h = {0};
	int many = 0;
	if (rank == 0) {
		glob_t g = {0};
		snprintf(pattern, sizeof pattern, "%s.[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].head", name);
		glob(pattern, 0, NULL, &g);
		many = g.gl_pathc;
		for (int i = many - 1; i >= 0 && !*found; i--) {
			g.gl_pathv[i][strlen(g.gl_pathv[i]) - 5] = 0;
			if (good(g.gl_pathv[i], &h))
				snprintf(found, sizeof found, "%s", g.gl_pathv[i]);
		}
		globfree(&g);
		if (many && !*found) {
			printf("no checkpoint of %s is good; to begin again, remove them\n", name);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Bcast(found, sizeof found, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Bcast(&h, sizeof h, MPI_BYTE, 0, MPI_COMM_WORLD);
	if (!*found) {
		square = p4est_connectivity_new_unitsquare();
		mesh = p4est_new_ext(MPI_COMM_WORLD, square, 0, COARSE, 1, sizeof(cell_t), zero, NULL);
		run.least = mesh->global_num_quadrants;
		share();
		return;
	}
	double mass, error, begun = clock_now();
	mesh = p4est_load_ext(found, MPI_COMM_WORLD, sizeof(cell_t), 1, 1, 1, NULL, &square);
	run = h;
	share();
	now_t = run.done * END / (6 << run.level);
	measure(&mass, &error);
	int same = run.cells == h.cells && fabs(mass - h.mass) <= TOLERANCE && fabs(error - h.error) <= TOLERANCE;
	if (rank == 0)
		printf("%s on %d ranks: mass and error are %s, read in %.3f s, %.1f s after the last iteration\n", found, mesh->mpisize,
		       same ? "the same" : "different", clock_now() - begun, clock_now() - h.at);
	if (!same)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

/* save writes the mesh, in its own order and not the ranks', and then the head that makes it a checkpoint. */
static void save(const char *name)
{
	char file[4096], new[4200], head[4200];
	snprintf(file, sizeof file, "%s.%08d", name, run.done);
	snprintf(new, sizeof new, "%s.new", file);
	snprintf(head, sizeof head, "%s.head", file);
	p4est_save_ext(new, mesh, 1, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank != 0)
		return;
	long long size;
	unsigned long long hash = sum(new, &size);
	int bad = rename(new, file);
	FILE *f = fopen(new, "w");
	bad |= !f || fprintf(f, "amr version %d\n" HEAD, VERSION, run.level, run.done, run.cells, size, hash, run.mass, run.entered, run.error, run.least, run.most, run.at) < 0;
	if (bad || fclose(f) || rename(new, head)) {
		perror(file);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	printf("%s: %lld bytes, written in %.3f s\n", file, size, clock_now() - run.at);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sc_init(MPI_COMM_WORLD, 0, 0, NULL, SC_LP_ERROR);
	p4est_init(NULL, SC_LP_ERROR);
	int many = argc > 2 ? atoi(argv[2]) : 0;
	run.level = argc > 3 ? atoi(argv[3]) : 8;
	if (many < 1 || run.level <= COARSE || run.level > FINEST || strlen(argv[1]) > 4000) {
		if (rank == 0)
			fprintf(stderr, "amr NAME ITERATIONS [LEVEL]: an iteration or more, and a level of %d to %d\n", COARSE + 1, FINEST);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	load(argv[1]);
	int first = run.done, end = 6 << run.level, last = many < end - first ? first + many : end;
	double begun = clock_now();
	while (run.done < last) {
		if (run.done % ADAPT == 0)
			adapt();
		iterate(END / end);
		if (rank == 0 && run.done % PRINT == 0)
			printf("iteration %d: %lld cells, %.3f s\n", run.done, run.cells, clock_now() - begun);
	}
	run.at = clock_now();
	measure(&run.mass, &run.error);
	int kept = fabs(run.mass - run.entered) <= TOLERANCE;
	if (rank == 0)
		printf("%d ranks, iterations %d to %d of %d: %.3f s, cells %lld, %lld to %lld so far, mass %.15e, error %.15e\n", mesh->mpisize, first, last, end,
		       run.at - begun, run.cells, run.least, run.most, run.mass, run.error);
	if (!kept) {
		if (rank == 0)
			printf("mass was lost: %.3e\n", run.entered - run.mass);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (last > first)
		save(argv[1]);
	forget();
	p4est_destroy(mesh);
	p4est_connectivity_destroy(square);
	return MPI_Finalize();
}
