/* A program for contrib/packages/try: an evolving job that passes through its steps. */
#include <evoslurm.h>
#include <stdio.h>

int main(void)
{
	struct evos_step *step;
	int rc = evos_current(&step);
	while (rc == EVOS_OK) {
		struct evos_step *ended = step;
		printf("step %d has %d nodes\n", step->number, step->nodes);
		fflush(stdout);
		rc = evos_next(ended, NULL, 0, &step);
		evos_free(ended);
	}
	if (rc != EVOS_DONE)
		fprintf(stderr, "%s\n", evos_error());
	return rc != EVOS_DONE;
}
