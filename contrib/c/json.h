/* A small reader of JSON; of this library alone. */
#ifndef EVOS_JSON_H
#define EVOS_JSON_H

#include <stddef.h>

/* Memory that is freed as a whole. */
struct arena {
	struct chunk *chunks;
};

void *evos_alloc(struct arena *a, size_t size); /* zeroed; NULL if there is none */
void evos_release(struct arena *a);

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	const char *name; /* in an object */
	const char *text; /* of a string */
	long long number; /* cut to whole ones */
	int count;        /* of values in an array or object */
	struct json *first, *next;
};

/* Reads text, which it changes and which has to outlive the values. NULL: it is no JSON. */
struct json *evos_json(struct arena *a, char *text);

/* The member of an object; NULL if it is none, or has none of the name. */
const struct json *evos_member(const struct json *object, const char *name);

#endif
