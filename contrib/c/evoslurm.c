/* See evoslurm.h. A call is one of "evosctl ... --json", not a request to the sidecar: what a caller
 * must prove with MUNGE takes a process anyway, and the configuration, the processes of evosrun
 * --follow and the job's hooks are evosctl's business, which is then done in one way. */
#include "evoslurm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"

#define PUBLIC __attribute__((visibility("default")))

extern char **environ;

enum { longest = 64 << 20, most_words = 12 };

/* What is given, and the memory that belongs to it. */
struct given {
	struct arena arena;
	union {
		struct evos_step step;
		struct evos_coming coming;
		struct evos_offer offer;
	} is;
};

/* The words of a command. */
struct words {
	struct given *of;
	char *word[most_words];
	int count;
};

static _Thread_local char reason[2048];

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return status;
}

PUBLIC const char *evos_error(void)
{
	return reason;
}

PUBLIC void evos_free(const void *what)
{
	if (!what)
		return;
	struct given *g = (struct given *)(uintptr_t)((const char *)what - offsetof(struct given, is));
	evos_release(&g->arena);
	free(g);
}

static void drop(struct given *g)
{
	if (g)
		evos_free(&g->is);
}

/* A word more; out of memory, or of words, there is none at all. */
__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *word = n >= 0 && w->of && w->count >= 0 && w->count + 1 < most_words ? evos_alloc(&w->of->arena, (size_t)n + 1) : NULL;
	if (!word) {
		w->count = -1;
		return;
	}
	va_start(args, format);
	vsnprintf(word, (size_t)n + 1, format, args);
	va_end(args);
	w->word[w->count++] = word;
}

static struct words command(const char *name)
{
	struct words w = {.of = calloc(1, sizeof(struct given))};
	add(&w, "evosctl");
	add(&w, "%s", name);
	return w;
}

static void add_seconds(struct words *w, double timeout)
{
	if (timeout > 0)
		add(w, "--timeout=%lldms", timeout < 1e12 ? (long long)(timeout * 1000) + 1 : (long long)1e15);
}

/* Starts the command with its output in a pipe. */
static int start(struct words *w, pid_t *pid)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, usual;
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGINT);
	sigaddset(&usual, SIGTERM);
	sigaddset(&usual, SIGHUP);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGCHLD);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	/* The application may have blocked or ignored signals: not for evosctl. */
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (ends[1] == 1) /* dup2 on itself would leave it to be closed */
		fcntl(1, F_SETFD, 0);
	int error = posix_spawnp(pid, w->word[0], &actions, &attributes, w->word, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (error) {
		close(ends[0]);
		errno = error;
		return -1;
	}
	return ends[0];
}

/* Reads all that there is, up to a limit. */
static char *slurp(struct arena *a, int from)
{
	size_t have = 0, room = 1 << 14;
	char *text = malloc(room);
	while (text && have < longest) {
		ssize_t n = read(from, text + have, room - have - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		if (have + 1 == room) {
			char *more = realloc(text, room *= 2);
			if (!more)
				free(text);
			text = more;
		}
	}
	close(from);
	char *kept = text ? evos_alloc(a, have + 1) : NULL;
	if (kept)
		memcpy(kept, text, have);
	free(text);
	return kept;
}

/* Runs the command. What evosctl has to say, such as that the sidecar is away, goes to standard error. */
static int run(struct words *w, const struct json **answer)
{
	*answer = NULL;
	if (!w->of || w->count < 0)
		return fail(EVOS_ERROR, "out of memory");
	pid_t pid;
	int from = start(w, &pid);
	if (from < 0)
		return fail(EVOS_ERROR, "evosctl: %s", strerror(errno));
	char *text = slurp(&w->of->arena, from);
	int status = 0, waited;
	while ((waited = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	/* Where the application ignores SIGCHLD, or waits for all children, the answer itself has to tell. */
	int code = waited < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (!text)
		return fail(EVOS_ERROR, "out of memory");
	int empty = !text[strspn(text, " \t\r\n")];
	*answer = empty ? NULL : evos_json(&w->of->arena, text);
	if (!empty && !*answer)
		return fail(EVOS_ERROR, "evosctl %s: it printed no JSON", w->word[1]);
	const struct json *error = evos_member(*answer, "error");
	if (code == 0 && !error)
		return EVOS_OK;
	int kind = code == 2 ? EVOS_REFUSED : code == 124 ? EVOS_TIMEOUT : EVOS_ERROR;
	if (error && error->kind == JSON_STRING && *error->text)
		return fail(kind, "%s", error->text);
	return fail(kind, "evosctl %s: exit status %d", w->word[1], code);
}

static int older(void)
{
	return fail(EVOS_ERROR, "this evosctl is older than the library: install them together");
}

static long long number(const struct json *object, const char *name)
{
	const struct json *m = evos_member(object, name);
	return m && m->kind == JSON_NUMBER ? m->number : 0;
}

static const char *text(const struct json *object, const char *name)
{
	const struct json *m = evos_member(object, name);
	return m && m->kind == JSON_STRING ? m->text : "";
}

/* The strings of an array. */
static int names(struct given *g, const struct json *array, const char *const **to)
{
	int n = array && array->kind == JSON_ARRAY ? array->count : 0, i = 0;
	const char **all = evos_alloc(&g->arena, sizeof *all * ((size_t)n + 1));
	if (!all)
		return -1;
	for (const struct json *v = n ? array->first : NULL; v; v = v->next)
		all[i++] = v->kind == JSON_STRING ? v->text : "";
	*to = all;
	return n;
}

static int read_part(struct given *g, const struct json *from, struct evos_part *to)
{
	const struct json *cpus = evos_member(from, "cpus");
	to->job = (unsigned)number(from, "job");
	to->nodes = names(g, evos_member(from, "node_list"), &to->names);
	int *counts = to->nodes < 0 ? NULL : evos_alloc(&g->arena, sizeof *counts * ((size_t)to->nodes + 1)), i = 0;
	if (!counts)
		return 0;
	for (const struct json *v = cpus ? cpus->first : NULL; v && i < to->nodes; v = v->next)
		counts[i++] = (int)v->number;
	to->cpus = counts;
	return 1;
}

/* Unix seconds of a time as RFC 3339 has it; 0 if there is none. */
static long long seconds(const char *at)
{
	struct tm t = {0};
	int read = 0, hours = 0, minutes = 0;
	if (sscanf(at, "%d-%d-%dT%d:%d:%d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec, &read) != 6)
		return 0;
	at += read;
	at += strspn(at, ".0123456789");
	t.tm_year -= 1900;
	t.tm_mon--;
	long long zone = (*at == '+' || *at == '-') && sscanf(at + 1, "%d:%d", &hours, &minutes) == 2 ? hours * 3600LL + minutes * 60 : 0;
	return timegm(&t) - (*at == '-' ? -zone : zone);
}

static int read_coming(struct given *g, const struct json *from, struct evos_coming *to)
{
	to->number = (int)number(from, "step");
	to->nodes = (int)number(from, "nodes");
	to->at = seconds(text(from, "at"));
	to->arriving = names(g, evos_member(from, "arriving"), &to->arriving_names);
	to->leaving = names(g, evos_member(from, "leaving"), &to->leaving_names);
	return to->arriving >= 0 && to->leaving >= 0;
}

/* Sets the environment as a shell that evaluates what evosctl prints. */
static int apply(const struct json *variables)
{
	for (const struct json *v = variables->first; v; v = v->next)
		if (v->kind == JSON_STRING ? setenv(v->name, v->text, 1) : unsetenv(v->name))
			return 0;
	return 1;
}

static int read_step(struct given *g, const struct json *from, struct evos_step *to)
{
	const struct json *parts = evos_member(from, "parts"), *coming = evos_member(from, "coming");
	int count = parts && parts->kind == JSON_ARRAY ? parts->count : 0, i = 0, n = 0;
	struct evos_part *part = evos_alloc(&g->arena, sizeof *part * ((size_t)count + 1));
	if (!part)
		return 0;
	for (const struct json *p = count ? parts->first : NULL; p; p = p->next) {
		if (!read_part(g, p, &part[i]))
			return 0;
		to->nodes += part[i++].nodes;
	}
	const char **all = evos_alloc(&g->arena, sizeof *all * ((size_t)to->nodes + 1));
	struct evos_coming *next = evos_alloc(&g->arena, sizeof *next);
	if (!all || !next)
		return 0;
	for (i = 0; i < count; i++)
		for (int k = 0; k < part[i].nodes; k++)
			all[n++] = part[i].names[k];
	to->job = (unsigned)number(from, "job");
	to->number = (int)number(from, "step");
	to->steps = (int)number(from, "steps");
	to->names = all;
	to->drive = text(from, "drive");
	to->note = text(from, "note");
	to->parts = count;
	to->part = part;
	to->restarts = (int)number(from, "restarts");
	to->lost = names(g, evos_member(from, "lost"), &to->lost_names);
	if (to->lost < 0)
		return 0;
	if (coming && coming->kind == JSON_OBJECT) {
		to->coming = next;
		return read_coming(g, coming, next);
	}
	return 1;
}

/* Runs a command that answers with what the job has. */
static int present(struct words *w, struct evos_step **step)
{
	const struct json *a, *environ;
	*step = NULL;
	add(w, "--json");
	int rc = run(w, &a);
	if (rc == EVOS_OK && (!(environ = evos_member(a, "environ")) || environ->kind != JSON_OBJECT))
		rc = older();
	if (rc == EVOS_OK && !read_step(w->of, a, &w->of->is.step))
		rc = fail(EVOS_ERROR, "out of memory");
	if (rc == EVOS_OK && !apply(environ))
		rc = fail(EVOS_ERROR, "the environment of the step: %s", strerror(errno));
	const struct json *done = rc == EVOS_OK ? evos_member(a, "done") : NULL;
	if (done && done->kind == JSON_TRUE && !strcmp(w->word[1], "next"))
		rc = EVOS_DONE;
	if (rc == EVOS_OK)
		*step = &w->of->is.step;
	else
		drop(w->of);
	return rc;
}

PUBLIC int evos_current(struct evos_step **step)
{
	struct words w = command("env");
	return present(&w, step);
}

PUBLIC int evos_next(const struct evos_step *ended, const char *release, double timeout, struct evos_step **step)
{
	struct words w = command("next");
	if (ended) {
		add(&w, "--job=%u", ended->job);
		add(&w, "--from=%d", ended->number);
	}
	if (release)
		add(&w, "--release=%s", release);
	add_seconds(&w, timeout);
	return present(&w, step);
}

PUBLIC int evos_grow(int nodes, int least, const char *lasts, const char *wait, struct evos_step **step)
{
	struct words w = command("grow");
	*step = NULL;
	if (least > 0)
		add(&w, "--min=%d", least);
	if (lasts)
		add(&w, "--for=%s", lasts);
	if (wait)
		add(&w, "--wait=%s", wait);
	if (nodes < 1) {
		drop(w.of);
		return fail(EVOS_ERROR, "to grow by %d nodes: want at least 1", nodes);
	}
	add(&w, "%d", nodes);
	return present(&w, step);
}

PUBLIC int evos_shrink(int nodes, const char *list, const char *lasts, struct evos_step **step)
{
	struct words w = command("shrink");
	*step = NULL;
	if (nodes < 0 || (nodes == 0 && !list)) {
		drop(w.of);
		return fail(EVOS_ERROR, "to shrink by %d nodes: want at least 1, or their names", nodes);
	}
	if (nodes > 0)
		add(&w, "%d", nodes);
	if (list)
		add(&w, "--nodes=%s", list);
	if (lasts)
		add(&w, "--for=%s", lasts);
	return present(&w, step);
}

PUBLIC int evos_peek(struct evos_coming **coming)
{
	struct words w = command("peek");
	const struct json *a;
	*coming = NULL;
	add(&w, "--json");
	int rc = run(&w, &a);
	if (rc == EVOS_OK && (!a || a->kind != JSON_OBJECT || !evos_member(a, "step"))) /* what is demanded in the last step, alone */
		rc = a ? EVOS_DONE : older();
	if (rc == EVOS_OK && !read_coming(w.of, a, &w.of->is.coming))
		rc = fail(EVOS_ERROR, "out of memory");
	if (rc == EVOS_OK)
		*coming = &w.of->is.coming;
	else
		drop(w.of);
	return rc;
}

PUBLIC int evos_wait_event(long long after, double timeout, struct evos_offer **offer)
{
	struct words w = command("wait-event");
	const struct json *a, *mandatory;
	*offer = NULL;
	if (after)
		add(&w, "--after=%lld", after);
	add_seconds(&w, timeout);
	int rc = run(&w, &a);
	if (rc == EVOS_OK && !evos_member(a, "names"))
		rc = older();
	if (rc == EVOS_OK) {
		struct evos_offer *o = &w.of->is.offer;
		o->job = (unsigned)number(a, "job");
		o->id = number(a, "offer");
		o->kind = text(a, "kind");
		o->mandatory = (mandatory = evos_member(a, "mandatory")) && mandatory->kind == JSON_TRUE;
		o->nodes = (int)number(a, "nodes");
		o->has = (int)number(a, "has");
		o->seconds = (int)number(a, "seconds");
		o->why = text(a, "why");
		o->until = (long long)seconds(text(a, "until"));
		if (names(w.of, evos_member(a, "names"), &o->names) < 0 || (o->further = names(w.of, evos_member(a, "further"), &o->further_names)) < 0)
			rc = fail(EVOS_ERROR, "out of memory");
		*offer = o;
	}
	if (rc != EVOS_OK) {
		*offer = NULL;
		drop(w.of);
	}
	return rc;
}

/* The words of an answer to an offer. */
static struct words answer(const char *name, const struct evos_offer *offer)
{
	struct words w = command(name);
	add(&w, "--job=%u", offer->job);
	add(&w, "--offer=%lld", offer->id);
	return w;
}

PUBLIC int evos_accept(const struct evos_offer *offer, int nodes, struct evos_step **step)
{
	*step = NULL;
	if (nodes < 0)
		return fail(EVOS_ERROR, "to accept %d nodes: want at least 1, or 0 for all", nodes);
	struct words w = answer("accept", offer);
	add(&w, "%d", nodes ? nodes : offer->nodes);
	return present(&w, step);
}

PUBLIC int evos_decline(const struct evos_offer *offer)
{
	struct words w = answer("decline", offer);
	const struct json *a;
	int rc = run(&w, &a);
	drop(w.of);
	return rc;
}

PUBLIC int evos_progress(double fraction)
{
	struct words w = command("progress");
	const struct json *a;
	int rc = EVOS_OK;
	if (!(fraction >= 0 && fraction <= 1))
		rc = fail(EVOS_ERROR, "progress of %g: want 0 to 1", fraction);
	long long billionths = rc == EVOS_OK ? (long long)(fraction * 1e9 + 0.5) : 0;
	add(&w, "%lld.%09lld", billionths / 1000000000, billionths % 1000000000); /* in any locale */
	if (rc == EVOS_OK)
		rc = run(&w, &a);
	drop(w.of);
	return rc;
}
