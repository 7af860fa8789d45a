/* See evoslurm_mpi.h. Rank 0 asks evosctl, in a thread that makes no call of MPI, and speaks for all.
 *
 * The adaptation point is AFPAC's (Buisson, Andre, Pazat 2005): one global state in the future of all ranks. At a meeting, rank 0
 * sends each rank whether a change is due, and when the next meeting is; at the point after it, all act on that message. So
 * ranks agree without a collective call, and none is more than a point ahead of rank 0. Meetings are about `every` seconds apart.
 *
 * Ranks are spawned by rank 0 alone, so that a failure stays with it until all have agreed on it. */
#include "evoslurm_mpi.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

extern char **environ;

enum { name_size = 256, reason_size = 1024, tags = 8000 };

/* What rank 0 says at a meeting. */
struct word {
	long long call, due, next;
};

/* What rank 0 says when all have come to the point, or one has not. */
struct verdict {
	int rc, number, nodes, leaving, size;
	char reason[reason_size];
};

static struct {
	struct evos_mpi o;
	MPI_Comm comm, own; /* the program's, and a duplicate for our messages */
	MPI_Comm *made;     /* those that ranks must leave before they end */
	int count, rank, size;
	int born; /* by MPI_Comm_spawn */
	char node[name_size];
	long long iteration, calls, meeting;
	int epoch, over;
	struct word word, *sent;
	MPI_Request *sends;
	int sending;
	/* of rank 0 */
	struct evos_step *step;
	struct evos_coming *coming;
	int pending; /* the step has ended, and nodes are awaited */
	double looked, met;
	long long met_at, stride;
	pthread_t thread;
	int asking;
	atomic_int answered;
	struct evos_coming *answer;
	char folder[64]; /* a file for each spawned rank that has not ended */
} my = {.comm = MPI_COMM_NULL, .own = MPI_COMM_NULL, .iteration = -1, .meeting = 1, .stride = 1};

static char reason[reason_size];

PUBLIC const char *evos_mpi_error(void)
{
	return reason;
}

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return status;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits until the request is done, for at most seconds. It first spins, then sleeps longer and longer, up to a millisecond. */
static int done(MPI_Request *r, double seconds)
{
	double until = now() + seconds;
	for (long turn = 0;; turn++) {
		int flag = 0;
		MPI_Test(r, &flag, MPI_STATUS_IGNORE);
		if (flag)
			return 1;
		if (now() > until)
			return 0;
		if (turn > 100)
			nanosleep(&(struct timespec){0, turn < 1100 ? (turn - 100) * 1000 : 1000000}, NULL);
	}
}

/* Gives all ranks rank 0's status and reason. */
static int agree(MPI_Comm comm, int rc)
{
	MPI_Request r;
	MPI_Ibcast(&rc, 1, MPI_INT, 0, comm, &r);
	done(&r, 1e18); /* rank 0 may wait for nodes meanwhile */
	if (rc != EVOS_OK)
		MPI_Bcast(reason, sizeof reason, MPI_CHAR, 0, comm);
	return rc;
}

static int keep(MPI_Comm comm)
{
	MPI_Comm *more = realloc(my.made, sizeof *more * (size_t)(my.count + 1));
	if (!more)
		return 0;
	my.made = more;
	my.made[my.count++] = comm;
	return 1;
}

static int among(const char *name, int n, const char *const *names)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return 1;
	return 0;
}

static double or(double value, double otherwise)
{
	return value > 0 ? value : otherwise;
}

/* Takes a communicator as the program's. */
static int adopt(MPI_Comm comm)
{
	if (my.comm == comm)
		return EVOS_OK;
	if (MPI_Comm_dup(comm, &my.own) != MPI_SUCCESS || !keep(my.own))
		return fail(EVOS_ERROR, "cannot duplicate the communicator");
	MPI_Comm_set_errhandler(my.own, MPI_ERRORS_RETURN);
	my.comm = comm;
	MPI_Comm_rank(my.own, &my.rank);
	MPI_Comm_size(my.own, &my.size);
	for (int i = 1; i < my.sending; i++)
		done(&my.sends[i], 1); /* taken already, by ranks that were at the point */
	free(my.sends);
	free(my.sent);
	my.sends = calloc((size_t)my.size, sizeof *my.sends);
	my.sent = calloc((size_t)my.size, sizeof *my.sent);
	my.sending = 0;
	return my.sends && my.sent ? EVOS_OK : fail(EVOS_ERROR, "out of memory");
}

/* Finds the name of this rank's node, for ranks that mpiexec started. Without Slurm's variable, and if the host has another
 * name than the job's nodes, it is the node of the job's script. */
static int find_node(void)
{
	const char *name = getenv("SLURMD_NODENAME");
	if (name && *name)
		snprintf(my.node, sizeof my.node, "%s", name);
	else if (gethostname(my.node, sizeof my.node - 1) == 0)
		my.node[strcspn(my.node, ".")] = 0;
	char *all = my.rank == 0 ? malloc((size_t)my.size * name_size) : NULL;
	int rc = agree(my.own, my.rank == 0 && !all ? fail(EVOS_ERROR, "out of memory") : EVOS_OK);
	if (rc != EVOS_OK)
		return rc;
	MPI_Gather(my.node, name_size, MPI_CHAR, all, name_size, MPI_CHAR, 0, my.own);
	for (int i = 0; my.rank == 0 && my.step->nodes && i < my.size; i++)
		if (!among(all + (size_t)i * name_size, my.step->nodes, my.step->names))
			snprintf(all + (size_t)i * name_size, name_size, "%s", my.step->names[0]);
	MPI_Scatter(all, name_size, MPI_CHAR, my.node, name_size, MPI_CHAR, 0, my.own);
	free(all);
	return EVOS_OK;
}

/* Takes the communicator, and the first time asks for the step that the job is in. */
static int ready(MPI_Comm comm)
{
	int rc = adopt(comm);
	if (rc != EVOS_OK || *my.node)
		return rc;
	if (my.rank == 0 && (rc = evos_current(&my.step)) != EVOS_OK)
		fail(rc, "%s", evos_error());
	rc = agree(my.own, rc);
	return rc == EVOS_OK ? find_node() : rc;
}

static void *ask(void *unused)
{
	(void)unused;
	if (evos_peek(&my.answer) != EVOS_OK)
		my.answer = NULL; /* the last step, or a failure: the next look tells */
	atomic_store(&my.answered, 1);
	return NULL;
}

/* Reports whether a change is due, by the last answer, and has the next question asked. */
static int look(void)
{
	if (my.asking && atomic_load(&my.answered)) {
		pthread_join(my.thread, NULL);
		my.asking = 0;
		evos_free(my.coming);
		my.coming = my.answer;
		my.answer = NULL;
	}
	if (!my.asking && !my.over && now() - my.looked >= or(my.o.every, 1)) {
		my.looked = now();
		atomic_store(&my.answered, 0);
		my.asking = pthread_create(&my.thread, NULL, ask, NULL) == 0;
	}
	if (my.over || my.pending)
		return my.pending && !my.over;
	return my.coming && my.coming->at && (double)my.coming->at - (double)time(NULL) < or(my.o.ahead, 2);
}

/* Rank 0 at a meeting: says whether a change is due, and when the next meeting is. */
static int speak(void)
{
	for (int i = 1; i < my.sending; i++)
		if (!done(&my.sends[i], or(my.o.timeout, 60)))
			return fail(EVOS_TIMEOUT, "rank %d has not taken the message of the last adaptation point", i);
	double each = my.met > 0 && my.calls > my.met_at ? (now() - my.met) / (double)(my.calls - my.met_at) : 0;
	double fits = each > 0 ? or(my.o.every, 1) / 2 / each : 1;
	my.stride = fits < 1 ? 1 : fits > (double)(2 * my.stride) ? 2 * my.stride : (long long)fits;
	my.met = now();
	my.met_at = my.calls;
	my.word = (struct word){my.calls, look(), my.calls + 1 + my.stride};
	for (int i = 1; i < my.size; i++) {
		my.sent[i] = my.word;
		MPI_Isend(&my.sent[i], sizeof my.word, MPI_BYTE, i, 0, my.own, &my.sends[i]);
	}
	my.sending = my.size;
	return EVOS_OK;
}

/* Takes what rank 0 said at the last meeting. */
static int listen(void)
{
	MPI_Request r;
	if (my.rank == 0)
		return EVOS_OK;
	MPI_Irecv(&my.word, sizeof my.word, MPI_BYTE, 0, 0, my.own, &r);
	if (done(&r, or(my.o.timeout, 60)))
		return EVOS_OK;
	MPI_Cancel(&r);
	MPI_Request_free(&r);
	my.calls--; /* the next call is for the same point */
	return fail(EVOS_TIMEOUT, "rank 0 did not come to the adaptation point before iteration %lld within %g s", my.iteration, or(my.o.timeout, 60));
}

/* Rank 0 waits until all ranks have come to the point. */
static struct verdict judge(int tag)
{
	struct verdict v = {EVOS_OK, 0, my.step->nodes, 0, 0, ""};
	long long *at = calloc((size_t)my.size, sizeof *at);
	MPI_Request *r = calloc((size_t)my.size, sizeof *r);
	double until = now() + or(my.o.timeout, 60);
	if (!at || !r)
		v.rc = fail(EVOS_ERROR, "out of memory");
	for (int i = 1; v.rc != EVOS_ERROR && i < my.size; i++)
		MPI_Irecv(&at[i], 1, MPI_LONG_LONG, i, tag, my.own, &r[i]);
	for (int i = 1; v.rc != EVOS_ERROR && i < my.size; i++) {
		double left = until - now();
		if (!done(&r[i], left > 0 ? left : 0)) {
			if (v.rc == EVOS_OK)
				v.rc = fail(EVOS_TIMEOUT, "rank %d did not come to the adaptation point at iteration %lld within %g s", i, my.iteration, or(my.o.timeout, 60));
			MPI_Cancel(&r[i]);
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		} else if (at[i] != my.iteration && v.rc == EVOS_OK) {
			v.rc = fail(EVOS_REFUSED, "rank %d is at iteration %lld of its adaptation points, and rank 0 at %lld", i, at[i], my.iteration);
		}
	}
	free(at);
	free(r);
	if (v.rc != EVOS_OK)
		snprintf(v.reason, sizeof v.reason, "%s", reason);
	return v;
}

/* All ranks are at the point, or none adapts. */
static int meet(struct evos_mpi_change *change)
{
	int tag = 1 + my.epoch++ % tags * 2;
	struct verdict v;
	MPI_Request r;
	if (my.rank == 0) {
		v = judge(tag);
		if (my.coming && !my.pending) {
			v.number = my.coming->number;
			v.nodes = my.coming->nodes;
			v.leaving = my.coming->leaving;
		}
		for (int i = 1; i < my.size; i++) { /* a rank that comes late takes it then */
			MPI_Isend(&v, sizeof v, MPI_BYTE, i, tag + 1, my.own, &r);
			if (v.rc == EVOS_OK)
				MPI_Wait(&r, MPI_STATUS_IGNORE);
			else
				MPI_Request_free(&r);
		}
	} else {
		MPI_Isend(&my.iteration, 1, MPI_LONG_LONG, 0, tag, my.own, &r);
		MPI_Request_free(&r);
		MPI_Irecv(&v, sizeof v, MPI_BYTE, 0, tag + 1, my.own, &r);
		if (!done(&r, 2 * or(my.o.timeout, 60))) {
			MPI_Cancel(&r);
			MPI_Request_free(&r);
			return fail(EVOS_TIMEOUT, "rank 0 did not come to the adaptation point at iteration %lld", my.iteration);
		}
	}
	if (v.rc != EVOS_OK)
		return fail(v.rc, "%s", v.reason);
	for (int i = 0; i < v.leaving; i++) {
		char name[name_size];
		if (my.rank == 0)
			snprintf(name, sizeof name, "%s", my.coming->leaving_names[i]);
		MPI_Bcast(name, sizeof name, MPI_CHAR, 0, my.own);
		change->leaves |= !strcmp(name, my.node);
	}
	change->due = 1;
	change->number = v.number;
	change->nodes = v.nodes;
	change->leaving = v.leaving;
	return EVOS_OK;
}

PUBLIC int evos_mpi_point(MPI_Comm comm, long long iteration, struct evos_mpi_change *change)
{
	memset(change, 0, sizeof *change);
	my.iteration = iteration;
	if (my.comm != comm) {
		int rc = ready(comm);
		if (rc != EVOS_OK)
			return rc;
	}
	my.calls++;
	if (my.calls < my.meeting)
		return EVOS_OK;
	if (my.calls == my.meeting)
		return my.rank == 0 ? speak() : EVOS_OK;
	int rc = listen();
	if (rc != EVOS_OK)
		return rc;
	my.meeting = my.word.next;
	return my.word.due ? meet(change) : EVOS_OK;
}

/* Leaves all communicators that ranks of nodes which go are in. The staying ranks have another one then. */
static int part(MPI_Comm *comm, int leaves)
{
	MPI_Comm stay;
	if (MPI_Comm_split(my.own, leaves ? MPI_UNDEFINED : 0, my.rank, &stay) != MPI_SUCCESS)
		return fail(EVOS_ERROR, "cannot split the communicator");
	while (my.count > 0) { /* a merged communicator is freed, one between groups is disconnected */
		int inter = 0;
		MPI_Comm *last = &my.made[--my.count];
		MPI_Comm_test_inter(*last, &inter);
		if (inter)
			MPI_Comm_disconnect(last);
		else
			MPI_Comm_free(last);
	}
	my.comm = my.own = MPI_COMM_NULL;
	*comm = stay;
	return leaves || keep(stay) ? EVOS_OK : fail(EVOS_ERROR, "out of memory");
}

/* Reports whether no spawned rank runs on the node, "" for any. Each has a file as long as it runs. */
static int ended(const char *node)
{
	size_t length = strlen(node);
	DIR *d = *my.folder ? opendir(my.folder) : NULL;
	int none = 1;
	for (struct dirent *e = d ? readdir(d) : NULL; e && none; e = readdir(d))
		none = !strchr(e->d_name, ':') || (length && (strncmp(e->d_name, node, length) || e->d_name[length] != ':'));
	if (d)
		closedir(d);
	return none;
}

static int await_end(const char *node)
{
	for (double until = now() + or(my.o.timeout, 60); !ended(node); nanosleep(&(struct timespec){0, 10000000}, NULL))
		if (now() > until)
			return fail(EVOS_ERROR, "the ranks on %s left %g s ago, and have not ended", *node ? node : "other nodes", or(my.o.timeout, 60));
	return EVOS_OK;
}

/* Rank 0 ends the step, once no rank runs on the nodes that go. */
static int next(const struct evos_mpi_change *change)
{
	for (int i = 0; change->leaving && my.coming && i < my.coming->leaving; i++)
		if (await_end(my.coming->leaving_names[i]) != EVOS_OK)
			return EVOS_ERROR;
	if (my.asking) { /* evos_next sets the environment, which no other thread may read */
		pthread_join(my.thread, NULL);
		my.asking = 0;
		evos_free(my.answer);
		my.answer = NULL;
	}
	struct evos_step *step;
	int rc = evos_next(my.step, NULL, my.o.wait, &step);
	if (rc != EVOS_OK)
		fail(rc, "%s", rc == EVOS_DONE ? "the job keeps its nodes" : evos_error());
	my.pending = rc == EVOS_TIMEOUT;
	my.over = rc == EVOS_DONE;
	if (rc != EVOS_OK)
		return rc;
	evos_free(my.coming);
	my.coming = NULL;
	my.looked = 0;
	evos_free(my.step);
	my.step = step;
	return EVOS_OK;
}

PUBLIC int evos_mpi_release(MPI_Comm *comm, const struct evos_mpi_change *change)
{
	int rc = ready(*comm), leaves = change->leaves, world[2] = {leaves, !leaves}, all[2], leaving = 0;
	if (rc != EVOS_OK)
		return rc;
	MPI_Allreduce(world, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	int wrong = leaves && (all[1] || my.rank == 0) ? my.rank + 1 : 0, who = 0;
	MPI_Allreduce(&wrong, &who, 1, MPI_INT, MPI_MAX, my.own);
	if (who)
		return fail(EVOS_REFUSED, "rank %d cannot leave: its MPI_COMM_WORLD has ranks on nodes that stay, so start ranks with mpiexec on the first node only", who - 1);
	MPI_Allreduce(&leaves, &leaving, 1, MPI_INT, MPI_SUM, my.own);
	if (leaving && (rc = part(comm, leaves)) != EVOS_OK)
		return rc;
	if (leaves)
		return EVOS_OK;
	if ((rc = adopt(*comm)) != EVOS_OK)
		return rc;
	return agree(my.own, my.rank == 0 ? next(change) : EVOS_OK);
}

/* The words of this program's command line, quoted for a shell; NULL if there is no memory. */
static char *command_line(char *first, size_t room)
{
	FILE *f = fopen("/proc/self/cmdline", "r");
	size_t size = 1 << 16, n = 0;
	char *line = malloc(size);
	int c, begun = 0, word = 0;
	while (f && line && (c = getc(f)) != EOF) {
		if (n + 16 > size) {
			char *more = realloc(line, size *= 2);
			if (!more)
				free(line);
			if (!(line = more))
				break;
		}
		if (!begun)
			n += (size_t)sprintf(line + n, n ? " '" : "'");
		begun = c != 0;
		n += (size_t)(c == 0 ? sprintf(line + n, "'") : c == '\'' ? sprintf(line + n, "'\\''") : sprintf(line + n, "%c", c));
		if (c == 0 && !word++ && n < room)
			memcpy(first, line, n + 1);
	}
	if (f)
		fclose(f);
	return line;
}

/* Slurm's variables of the step that starts a rank are no business of MPI. */
static const char clean[] = "for v in $(env | sed -n 's/^\\(SLURM_[A-Za-z0-9_]*\\)=.*/\\1/p'); do [ $v = SLURM_CONF ] || unset $v; done; exec ";

/* Asks each node whether it can run the program: 1 for those that answer in time. */
static void try_nodes(int n, char **names, const char *program, char *works)
{
	pid_t *pid = calloc((size_t)n, sizeof *pid);
	char test[2 * name_size + 32];
	double until = now() + or(my.o.timeout, 60);
	snprintf(test, sizeof test, "command -v %s >/dev/null", program);
	for (int i = 0; pid && i < n; i++) {
		char *argv[] = {"evosctl", "launch", names[i], test, NULL};
		if (posix_spawnp(&pid[i], argv[0], NULL, NULL, argv, environ))
			pid[i] = 0;
	}
	for (int i = 0; pid && i < n; i++) {
		int status = 1, waited = 0;
		while (pid[i] && (waited = waitpid(pid[i], &status, WNOHANG)) == 0 && now() < until)
			nanosleep(&(struct timespec){0, 5000000}, NULL);
		if (pid[i] && waited == 0) {
			kill(pid[i], SIGTERM);
			waitpid(pid[i], &status, 0);
			status = 1;
		}
		works[i] = pid[i] && waited > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	free(pid);
}

/* Rank 0 starts the ranks of one node, and merges with them. */
static int start(char *node, char *line, MPI_Comm *merged)
{
	MPI_Comm children;
	MPI_Info info;
	MPI_Info_create(&info);
#ifdef OPEN_MPI
	/* Its daemons on nodes that came at different times cannot reach each other, so mpiexec on this node starts all ranks. Its
	 * own variables do not pass through evosctl launch, so they are words of the command. The file tells how long a rank runs. */
	static char wrapper[] = "f=$2/$1:$$; : >\"$f\"; evosctl launch \"$1\" \"$(export -p | grep '^export PMI')\n$3\"; s=$?; rm -f \"$f\"; exit $s";
	MPI_Info_set(info, "host", "localhost");
	char *argv[] = {"-c", wrapper, "evos-mpi", node, my.folder, line, NULL}, *program = "/bin/sh";
#else
	MPI_Info_set(info, "host", node);
	char *argv[] = {"-c", line, NULL}, *program = "/bin/sh";
#endif
	int rc = MPI_Comm_spawn(program, argv, my.o.ranks > 0 ? my.o.ranks : 1, info, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
	MPI_Info_free(&info);
	if (rc != MPI_SUCCESS) {
		char text[MPI_MAX_ERROR_STRING];
		int length;
		MPI_Error_string(rc, text, &length);
		text[strcspn(text, "\n")] = 0;
		return fail(EVOS_REFUSED, "MPI_Comm_spawn on %s: %s", node, text);
	}
	MPI_Intercomm_merge(children, 0, merged);
	return keep(children) && keep(*merged) ? EVOS_OK : fail(EVOS_ERROR, "out of memory");
}

/* What a spawned rank is given. */
struct hello {
	struct evos_mpi o;
	char node[name_size];
	long long iteration, calls, meeting;
	int epoch;
};

/* Makes one communicator of the ranks that there were and new ones. bridge joins rank 0 and the new ones. */
static int join(MPI_Comm local, MPI_Comm bridge, int born, const char *node, MPI_Comm *comm)
{
	MPI_Comm between, all;
	MPI_Intercomm_create(local, 0, bridge, born ? 0 : 1, 1, &between);
	MPI_Intercomm_merge(between, born, &all);
	if (!keep(between) || !keep(all))
		return fail(EVOS_ERROR, "out of memory");
	struct hello h = {my.o, "", my.iteration, my.calls, my.meeting, my.epoch};
	snprintf(h.node, sizeof h.node, "%s", node);
	MPI_Bcast(&h, sizeof h, MPI_BYTE, 0, all);
	if (born) {
		my.o = h.o;
		my.iteration = h.iteration;
		my.calls = h.calls;
		my.meeting = h.meeting;
		my.epoch = h.epoch;
		memcpy(my.node, h.node, sizeof my.node);
	}
	*comm = all;
	return adopt(all);
}

/* Rank 0's list of nodes without ranks. */
static int without_ranks(char **names)
{
	char *all = my.rank == 0 ? malloc((size_t)my.size * name_size) : NULL;
	int n = 0;
	if (my.rank == 0 && !all)
		return -1;
	MPI_Gather(my.node, name_size, MPI_CHAR, all, name_size, MPI_CHAR, 0, my.own);
	for (int i = 0; my.rank == 0 && i < my.step->nodes; i++) {
		int has = 0;
		for (int k = 0; k < my.size && !has; k++)
			has = !strcmp(my.step->names[i], all + (size_t)k * name_size);
		if (!has)
			names[n++] = (char *)(uintptr_t)my.step->names[i];
	}
	free(all);
	return n;
}

/* Goes on starting ranks, one node after the other. A new rank comes in here as well. */
static int go_on(MPI_Comm *comm, int n, char **names, const char *works, char *line)
{
	int failed = 0, i = 0;
	char missing[reason_size] = "", why[reason_size] = "it cannot run the program";
	for (;; i++) {
		int left = n - i, rc = EVOS_OK;
		MPI_Comm bridge = MPI_COMM_NULL;
		MPI_Bcast(&left, 1, MPI_INT, 0, my.own);
		if (left <= 0)
			break;
		char node[name_size] = "";
		if (my.rank == 0) {
			snprintf(node, sizeof node, "%s", names[i]);
			rc = works[i] ? start(names[i], line, &bridge) : EVOS_REFUSED;
		}
		if (rc == EVOS_REFUSED) {
			if (works[i])
				snprintf(why, sizeof why, "%s", reason);
			size_t have = strlen(missing);
			snprintf(missing + have, sizeof missing - have, "%s%s", failed++ ? "," : "", node);
		}
		MPI_Bcast(&rc, 1, MPI_INT, 0, my.own);
		if (rc == EVOS_OK && (rc = join(my.own, bridge, 0, node, comm)) != EVOS_OK)
			return rc;
	}
	int rc = EVOS_OK;
	if (failed)
		rc = fail(EVOS_REFUSED, "no ranks on %.400s: %.500s", missing, why);
	return agree(my.own, rc);
}

PUBLIC int evos_mpi_spawn(MPI_Comm *comm)
{
	int rc = ready(*comm), n = 0;
	if (rc != EVOS_OK)
		return rc;
	char program[name_size] = "", **names = NULL, *works = NULL, *line = NULL, *text = NULL;
	if (my.rank == 0) {
		names = calloc((size_t)my.step->nodes + 1, sizeof *names);
		works = calloc((size_t)my.step->nodes + 1, 1);
		line = command_line(program, sizeof program);
		text = line ? malloc(sizeof clean + strlen(line)) : NULL;
		const char *tmp = getenv("TMPDIR");
		if (!names || !works || !text)
			rc = fail(EVOS_ERROR, "out of memory");
		else if (!*my.folder && (snprintf(my.folder, sizeof my.folder, "%.40s/evos-mpi-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp"), !mkdtemp(my.folder)))
			rc = fail(EVOS_ERROR, "%s: %s", my.folder, strerror(errno));
		if (rc == EVOS_OK)
			sprintf(text, "%s%s", clean, line);
	}
	if ((rc = agree(my.own, rc)) == EVOS_OK) {
		n = without_ranks(names);
		if (my.pending) /* the nodes of the step that has ended are no longer all ours */
			n = 0;
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
		if (my.rank == 0)
			try_nodes(n, names, program, works);
		rc = go_on(comm, n, names, works, text);
	}
	free(names);
	free(works);
	free(line);
	free(text);
	return rc;
}

PUBLIC int evos_mpi_end(MPI_Comm *comm)
{
	int rc = ready(*comm);
	if (rc == EVOS_OK && my.calls == my.meeting) /* rank 0 has spoken at the last point */
		rc = listen();
	if (rc != EVOS_OK || (rc = part(comm, my.born)) != EVOS_OK || my.born)
		return rc;
	if (my.rank == 0) {
		rc = await_end("");
		if (*my.folder)
			rmdir(my.folder);
		*my.folder = 0;
		if (my.asking)
			pthread_join(my.thread, NULL);
		my.asking = 0;
	}
	return adopt(*comm) == EVOS_OK ? agree(my.own, rc) : EVOS_ERROR;
}

PUBLIC int evos_mpi_begin(const struct evos_mpi *options, MPI_Comm *comm, long long *iteration)
{
	MPI_Comm parent, bridge;
	int rc;
	if (options)
		my.o = *options;
	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		*comm = MPI_COMM_WORLD;
		*iteration = 0;
		return evos_mpi_spawn(comm);
	}
	my.born = 1;
	MPI_Intercomm_merge(parent, 1, &bridge);
	if (!keep(parent) || !keep(bridge))
		return fail(EVOS_ERROR, "out of memory");
	if ((rc = join(MPI_COMM_WORLD, bridge, 1, "", comm)) != EVOS_OK)
		return rc;
	*iteration = my.iteration + 1;
	return go_on(comm, 0, NULL, NULL, NULL);
}

/* For Fortran, whose communicators are integers: evoslurm_mpi.f90. */
PUBLIC int evos_mpi_begin_f(const struct evos_mpi *options, MPI_Fint *comm, long long *iteration)
{
	MPI_Comm c = MPI_COMM_NULL;
	int rc = evos_mpi_begin(options, &c, iteration);
	*comm = MPI_Comm_c2f(c);
	return rc;
}

PUBLIC int evos_mpi_point_f(MPI_Fint comm, long long iteration, struct evos_mpi_change *change)
{
	return evos_mpi_point(MPI_Comm_f2c(comm), iteration, change);
}

PUBLIC int evos_mpi_release_f(MPI_Fint *comm, const struct evos_mpi_change *change)
{
	MPI_Comm c = MPI_Comm_f2c(*comm);
	int rc = evos_mpi_release(&c, change);
	*comm = MPI_Comm_c2f(c);
	return rc;
}

PUBLIC int evos_mpi_spawn_f(MPI_Fint *comm)
{
	MPI_Comm c = MPI_Comm_f2c(*comm);
	int rc = evos_mpi_spawn(&c);
	*comm = MPI_Comm_c2f(c);
	return rc;
}

PUBLIC int evos_mpi_end_f(MPI_Fint *comm)
{
	MPI_Comm c = MPI_Comm_f2c(*comm);
	int rc = evos_mpi_end(&c);
	*comm = MPI_Comm_c2f(c);
	return rc;
}
