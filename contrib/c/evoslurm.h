/* An evolving job from the inside: evoslurm(3). Link with -levoslurm.
 *
 *     struct evos_step *step;
 *     int rc = evos_current(&step);
 *     while (rc == EVOS_OK) {
 *         system("evosrun ./amr");
 *         struct evos_step *ended = step;
 *         rc = evos_next(ended, NULL, 0, &step);
 *         evos_free(ended);
 *     }
 *     if (rc != EVOS_DONE)
 *         fprintf(stderr, "%s\n", evos_error());
 *
 * Who is killed and started again goes on with the step that the job is in then: none is
 * lost, none is ended twice. Each call runs "evosctl ... --json", without a shell: see evoslurm(3).
 * In an MPI program one rank calls, and tells the others.
 */
#ifndef EVOSLURM_H
#define EVOSLURM_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
	EVOS_OK = 0,
	EVOS_DONE = 1,     /* the last step has ended: there is no further one */
	EVOS_ERROR = -1,   /* evos_error() has the reason */
	EVOS_REFUSED = -2, /* a growth or shrink cannot be had; nothing has changed */
	EVOS_TIMEOUT = -3  /* what was waited for did not come in time */
};

/* The share of one Slurm job: all of it, but in drive mode companion. */
struct evos_part {
	unsigned job;
	int nodes;
	const char *const *names;
	const int *cpus; /* of each */
};

/* The next step, as it is planned at the moment. */
struct evos_coming {
	int number; /* from 1 */
	int nodes;
	long long at; /* Unix seconds; 0: it is planned once the present step has ended */
	int arriving, leaving;
	const char *const *arriving_names;
	const char *const *leaving_names;
};

/* What the job has in a step. */
struct evos_step {
	unsigned job;
	int number; /* from 1 */
	int steps;
	int nodes;
	const char *const *names; /* of all nodes, those of the base job first */
	const char *drive;
	const char *note;
	int parts;
	const struct evos_part *part;
	const struct evos_coming *coming; /* NULL: there is no further one */
	int lost; /* nodes that failed since the call before; what ran there has ended, even if names has them again */
	const char *const *lost_names;
	int restarts; /* how often Slurm put the job, or a link of its chain, back into the queue */
};

/* Nodes that a malleable job may have for a while, or that it is to give back. */
struct evos_offer {
	unsigned job;
	long long id;
	const char *kind; /* grow or shrink */
	int mandatory;    /* the nodes are taken at the deadline, whatever the answer */
	int nodes;        /* to be had at most, or wanted back at least */
	const char *const *names; /* these */
	int further;              /* nodes that would go after them, if more are given back */
	const char *const *further_names;
	int has;     /* nodes that the job had when it was made */
	int seconds; /* until the deadline */
	const char *why;
	long long until; /* Unix second by which offered nodes must be left for the next job planned on them; 0: none */
};

/* All that give a step set the environment of this process by it, so that evosrun, srun and
 * MPI launchers see its nodes: no other thread may use the environment meanwhile. Where they do
 * not answer EVOS_OK there is no step. What they give is freed by evos_free. */

/* The step that the job is in. */
int evos_current(struct evos_step **step);

/* Ends the step, the current one if ended is NULL, and waits for the nodes of the next one, for
 * timeout seconds if that is above 0. Another call continues to wait. release names nodes that the
 * application prefers to give up at a shrink, "n3,n4", or is NULL. For a step that has ended already,
 * it only waits. */
int evos_next(const struct evos_step *ended, const char *release, double timeout, struct evos_step **step);

/* The next step as it is planned at the moment; EVOS_DONE in the last. */
int evos_peek(struct evos_coming **coming);

/* Ends the step and begins one with so many more nodes (at least least, if above 0), for lasts, "20m",
 * or NULL: for the rest of the present step; now, or within wait, "5m", if that is not NULL. */
int evos_grow(int nodes, int least, const char *lasts, const char *wait, struct evos_step **step);

/* Ends the step and begins one with that many fewer nodes, or without the named nodes, "n3,n4". */
int evos_shrink(int nodes, const char *names, const char *lasts, struct evos_step **step);

/* Waits for an offer to the malleable job, or a demand, with another id than after. It returns an
 * unanswered one again. */
int evos_wait_event(long long after, double timeout, struct evos_offer **offer);

/* Takes so many nodes, all if nodes is 0, or gives them back: leave them before. Waits until they
 * have come or gone; the step goes on with them. To accept an offer again only waits. */
int evos_accept(const struct evos_offer *offer, int nodes, struct evos_step **step);

/* Leaves all as it is; nodes of a mandatory shrink are taken at the deadline nevertheless. */
int evos_decline(const struct evos_offer *offer);

/* Tells which part of its work the application has done, from 0 to 1. */
int evos_progress(double fraction);

/* A change of the job's nodes that is due. */
struct evos_change {
	const char *kind; /* next (the planned step), grow or shrink (decided), accept (an offer or a demand) */
	int nodes;        /* of the job after it; a growth may bring fewer */
	int leaving;      /* the application must leave these nodes first */
	const char *const *leaving_names;
};

/* The loop of an application that adapts: observe, decide, plan, execute. Set what you need, and zero the rest. */
struct evos_adaptive {
	void *app; /* what the callbacks get; each callback may be NULL */
	/* Looks at the application, such as its load, before each decision. */
	void (*observe)(void *app, const struct evos_step *step);
	/* Returns how many nodes the application wants from now on; 0: as planned. */
	int (*decide)(void *app, const struct evos_step *step);
	/* Leaves the nodes that go. It returns 0 if the application is not off them yet: the next evos_adapt calls it again. */
	int (*plan)(void *app, const struct evos_step *step, const struct evos_change *change);
	/* Goes on with the nodes of the new step. */
	void (*execute)(void *app, const struct evos_step *step, const struct evos_change *change);
	double every;  /* shortest time between two looks at the plan, in seconds (0: 1) */
	double ahead;  /* how long before its time a planned step begins, in seconds (0: 2) */
	double offers; /* how long a look of a malleable job waits for an offer or a demand, in seconds (0: no offers) */

	struct evos_step *step; /* what the job has now */
	struct evos_change due; /* what plan has not made way for yet; kind is NULL if nothing is due */
	const void *held;       /* memory of due */
	struct evos_offer *offer;
	long long after;
	double look_at;
	int done;
};

/* Adapts if a change is due. Call it between two pieces of work: unless it is time to look, it costs one
 * reading of the clock. A look takes one process of evosctl, or two with offers. EVOS_REFUSED: what decide
 * wanted cannot be had, and nothing has changed; the application can go on. */
int evos_adapt(struct evos_adaptive *a);

/* Frees what evos_adapt holds. The structure can be used again. */
void evos_adapt_end(struct evos_adaptive *a);

/* Why the last call of this thread failed; never NULL. */
const char *evos_error(void);

/* Frees a step, a coming step or an offer that a function here has given; NULL is none. */
void evos_free(const void *given);

#ifdef __cplusplus
}
#endif
#endif
