/* evos_adapt: the loop of an application that adapts, over the calls of evoslurm.c. Its four callbacks are the
 * components of DYNACO (Buisson, Sonmez, Mohamed, Lammers, Epema 2007, section IV-B). */
#include "evoslurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default")))

static double clock_of(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Forgets what was due. */
static void clear(struct evos_adaptive *a)
{
	evos_free(a->held);
	a->held = NULL;
	a->offer = NULL;
	memset(&a->due, 0, sizeof a->due);
}

PUBLIC void evos_adapt_end(struct evos_adaptive *a)
{
	clear(a);
	evos_free(a->step);
	a->step = NULL;
	a->look_at = 0;
	a->after = a->done = 0;
}

/* Looks for an offer or a demand, and declines what the application does not want. */
static int offered(struct evos_adaptive *a, int wanted)
{
	struct evos_offer *o;
	if (!(a->offers > 0))
		return EVOS_OK;
	int rc = evos_wait_event(a->after, a->offers, &o), has = a->step->nodes;
	if (rc != EVOS_OK)
		return rc == EVOS_TIMEOUT ? EVOS_OK : rc;
	a->after = o->id;
	if (!strcmp(o->kind, "shrink")) {
		int named = 0;
		while (named < o->nodes && o->names[named])
			named++;
		a->due = (struct evos_change){"accept", has - o->nodes, named, o->names};
	} else {
		int take = !wanted || wanted - has > o->nodes ? o->nodes : wanted - has;
		if (take <= 0) {
			rc = evos_decline(o);
			evos_free(o);
			return rc;
		}
		a->due = (struct evos_change){"accept", has + take, 0, NULL};
	}
	a->held = a->offer = o;
	return EVOS_OK;
}

/* Looks whether the planned step is due. */
static int planned(struct evos_adaptive *a)
{
	struct evos_coming *c;
	int rc = evos_peek(&c);
	if (rc != EVOS_OK)
		return rc == EVOS_DONE ? EVOS_OK : rc;
	if (!c->at || (double)c->at - clock_of(CLOCK_REALTIME) >= (a->ahead != 0 ? a->ahead : 2)) {
		evos_free(c);
		return EVOS_OK;
	}
	a->due = (struct evos_change){"next", c->nodes, c->leaving, c->leaving_names};
	a->held = c;
	return EVOS_OK;
}

static int look(struct evos_adaptive *a)
{
	if (a->observe)
		a->observe(a->app, a->step);
	int wanted = a->decide ? a->decide(a->app, a->step) : 0, has = a->step->nodes;
	if (a->offer) /* it stands until it is answered */
		return EVOS_OK;
	clear(a);
	int rc = offered(a, wanted);
	if (rc == EVOS_OK && !a->due.kind)
		rc = planned(a);
	if (rc == EVOS_OK && !a->due.kind && wanted > has)
		a->due = (struct evos_change){"grow", wanted, 0, NULL};
	if (rc == EVOS_OK && !a->due.kind && wanted > 0 && wanted < has)
		a->due = (struct evos_change){"shrink", wanted, has - wanted, a->step->names + wanted};
	return rc;
}

/* Shrinks by the nodes that the application has left. */
static int shrink(const struct evos_change *due, struct evos_step **step)
{
	size_t size = 1;
	for (int i = 0; i < due->leaving; i++)
		size += strlen(due->leaving_names[i]) + 1;
	char *names = malloc(size), *end = names;
	if (!names)
		return EVOS_ERROR;
	for (int i = 0; i < due->leaving; i++)
		end += sprintf(end, "%s%s", i ? "," : "", due->leaving_names[i]);
	int rc = evos_shrink(0, names, NULL, step);
	free(names);
	return rc;
}

static int carry_out(struct evos_adaptive *a, struct evos_step **step)
{
	int more = a->due.nodes - a->step->nodes;
	if (a->offer)
		return evos_accept(a->offer, more < 0 ? -more : more, step);
	if (!strcmp(a->due.kind, "next"))
		return evos_next(a->step, NULL, 0, step);
	return more > 0 ? evos_grow(more, 1, NULL, NULL, step) : shrink(&a->due, step);
}

PUBLIC int evos_adapt(struct evos_adaptive *a)
{
	struct evos_step *step = NULL;
	int rc = EVOS_OK;
	if (!a->step && (rc = evos_current(&a->step)) != EVOS_OK)
		return rc;
	if (a->done)
		return EVOS_DONE;
	if (clock_of(CLOCK_MONOTONIC) >= a->look_at) {
		rc = look(a);
		a->look_at = clock_of(CLOCK_MONOTONIC) + (a->every > 0 ? a->every : 1);
	}
	if (rc != EVOS_OK || !a->due.kind || (a->plan && !a->plan(a->app, a->step, &a->due)))
		return rc;
	rc = carry_out(a, &step);
	int over = a->offer && rc != EVOS_OK; /* the nodes of a mandatory demand are gone */
	if (over && (rc = evos_current(&step)) == EVOS_OK)
		rc = EVOS_REFUSED;
	a->done = rc == EVOS_DONE;
	struct evos_step *before = a->step;
	if (step)
		a->step = step;
	if (step && a->execute)
		a->execute(a->app, step, &a->due);
	clear(a);
	if (step)
		evos_free(before); /* due may have named its nodes */
	return rc;
}
