#include "json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
	struct chunk *next;
	max_align_t data[];
};

void *evos_alloc(struct arena *a, size_t size)
{
	struct chunk *c = size < SIZE_MAX - sizeof *c ? calloc(1, sizeof *c + size) : NULL;
	if (!c)
		return NULL;
	c->next = a->chunks;
	a->chunks = c;
	return c->data;
}

void evos_release(struct arena *a)
{
	while (a->chunks) {
		struct chunk *next = a->chunks->next;
		free(a->chunks);
		a->chunks = next;
	}
}

struct reader {
	struct arena *arena;
	char *at;
};

static struct json *value(struct reader *r, int depth);

static void space(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
}

static int hex(const char *s, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++) {
		char c = s[i];
		unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
		if (digit == 16)
			return 0;
		*out = *out * 16 + digit;
	}
	return 1;
}

/* Writes a character as UTF-8, which is no longer than its escape. */
static char *utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Reads a string in its place. */
static char *string(struct reader *r)
{
	if (*r->at != '"')
		return NULL;
	char *from = r->at + 1, *text = from, *to = from;
	while (*from != '"') {
		unsigned c, low;
		if ((unsigned char)*from < 0x20) /* the end of the text, too */
			return NULL;
		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
		from++;
		if (*from == 'u') {
			if (!hex(from + 1, &c) || c == 0)
				return NULL;
			from += 5;
			if (c >= 0xd800 && c < 0xdc00 && from[0] == '\\' && from[1] == 'u' && hex(from + 2, &low) && low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				from += 6;
			} else if (c >= 0xd800 && c < 0xe000) {
				c = 0xfffd;
			}
			to = utf8(to, c);
			continue;
		}
		const char *e = escapes;
		while (*e && *e != *from)
			e += 2;
		if (!*e)
			return NULL;
		*to++ = e[1];
		from++;
	}
	r->at = from + 1;
	*to = 0;
	return text;
}

static int word(struct reader *r, const char *text)
{
	size_t n = strlen(text);
	if (strncmp(r->at, text, n))
		return 0;
	r->at += n;
	return 1;
}

/* Reads the values of an array or object up to its end. */
static int values(struct reader *r, struct json *of, char end, int depth)
{
	struct json **last = &of->first;
	r->at++;
	space(r);
	if (*r->at == end) {
		r->at++;
		return 1;
	}
	for (;;) {
		const char *name = NULL;
		space(r);
		if (of->kind == JSON_OBJECT) {
			if (!(name = string(r)))
				return 0;
			space(r);
			if (*r->at++ != ':')
				return 0;
		}
		if (!(*last = value(r, depth + 1)))
			return 0;
		(*last)->name = name;
		last = &(*last)->next;
		of->count++;
		space(r);
		char c = *r->at;
		if (c != ',' && c != end)
			return 0;
		r->at++;
		if (c == end)
			return 1;
	}
}

static struct json *value(struct reader *r, int depth)
{
	struct json *v = depth < 32 ? evos_alloc(r->arena, sizeof *v) : NULL;
	if (!v)
		return NULL;
	space(r);
	switch (*r->at) {
	case '{':
		v->kind = JSON_OBJECT;
		return values(r, v, '}', depth) ? v : NULL;
	case '[':
		v->kind = JSON_ARRAY;
		return values(r, v, ']', depth) ? v : NULL;
	case '"':
		v->kind = JSON_STRING;
		return (v->text = string(r)) ? v : NULL;
	case 'n':
		return word(r, "null") ? v : NULL;
	case 't':
		v->kind = JSON_TRUE;
		return word(r, "true") ? v : NULL;
	case 'f':
		v->kind = JSON_FALSE;
		return word(r, "false") ? v : NULL;
	}
	if (*r->at != '-' && (*r->at < '0' || *r->at > '9'))
		return NULL;
	char *end;
	v->kind = JSON_NUMBER;
	v->number = strtoll(r->at, &end, 10);
	if (end == r->at)
		return NULL;
	r->at = end + strspn(end, "0123456789.eE+-");
	return v;
}

struct json *evos_json(struct arena *a, char *text)
{
	struct reader r = {a, text};
	struct json *v = value(&r, 0);
	if (!v)
		return NULL;
	space(&r);
	return *r.at ? NULL : v;
}

const struct json *evos_member(const struct json *object, const char *name)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (const struct json *m = object->first; m; m = m->next)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}
