#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "event/spool.h"

/* The text behind KEY and a blank, or NULL. */
static char *after(char *line, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(line, key, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

static char *decode(const char *s)
{
	char *out = tl_malloc(strlen(s) + 1), *p = out;
	unsigned v;

	for (; *s; s++) {
		if (*s == '%' && isxdigit((unsigned char)s[1]) && sscanf(s + 1, "%2x", &v) == 1) {
			*p++ = v;
			s += isxdigit((unsigned char)s[2]) ? 2 : 1;
		} else {
			*p++ = *s;
		}
	}
	*p = 0;
	return out;
}

static void head_line(struct tl_spool_head *h, char *line)
{
	long long u, s, r;
	unsigned long long tests;
	char *v;

	if ((v = after(line, "pid"))) {
		h->pid = atoi(v);
	} else if ((v = after(line, "started"))) {
		h->started = strtoull(v, NULL, 10);
	} else if ((v = after(line, "dialect"))) {
		h->dialect = !strcmp(v, "1997") ? TL_DIALECT_1997 : TL_DIALECT_IDS;
	} else if ((v = after(line, "output"))) {
		free(h->output);
		h->output = decode(v);
	} else if ((v = after(line, "over"))) {
		if (sscanf(v, "%lld %lld %lld %llu", &u, &s, &r, &tests) == 4) {
			h->over[0] = u;
			h->over[1] = s;
			h->over[2] = r;
			h->over_tests = tests;
		}
	} else if ((v = after(line, "run"))) {
		h->run = v;
	} else if ((v = after(line, "note"))) {
		tl_vec_push(&h->notes, v);
	}
}

int tl_spool_head_read(const char *dir, struct tl_spool_head *h)
{
	char *line, *rest;
	int r;

	*h = (struct tl_spool_head){.over_tests = 1};
	r = tl_spool_slurp(dir, "head", &h->text);
	if (r < 0)
		return r;
	for (rest = h->text; (line = strsep(&rest, "\n"));)
		head_line(h, line);
	return TL_OK;
}

void tl_spool_head_fini(struct tl_spool_head *h)
{
	free(h->text);
	free(h->output);
	tl_vec_fini(&h->notes);
}

static struct tl_spool_func *func_at(struct tl_spool_funcs *f, size_t func)
{
	size_t was = f->n;

	if (func >= f->n) {
		tl_vec_reserve(f, func + 1);
		f->n = func + 1;
		memset(f->at + was, 0, (f->n - was) * sizeof *f->at);
	}
	return &f->at[func];
}

/* `func ID pkg name about', `where ID ...', `how ID how self' */
static void func_line(struct tl_spool_funcs *f, char *line)
{
	char *kind = strsep(&line, " "), *word = strsep(&line, " "), *space;
	unsigned long id = word ? strtoul(word, NULL, 16) : 0;
	struct tl_spool_func *fn;

	if (!line || id < 2 || id > 1ul << 30)
		return;
	fn = func_at(f, id - 1);
	if (!strcmp(kind, "how")) {
		fn->how = strsep(&line, " ");
		fn->self = line;
	} else if (!strcmp(kind, "where")) {
		fn->where = line;
	} else if (!strcmp(kind, "func")) {
		space = strchr(line, ' ');
		if (!space)
			return;
		space = strchr(space + 1, ' ');
		if (space)
			*space = 0;
		fn->name = line;
		fn->about = space ? space + 1 : "module= addr=0x0";
	}
}

int tl_spool_funcs_read(const char *dir, struct tl_spool_funcs *f)
{
	char *line, *rest;
	int r;

	*f = (struct tl_spool_funcs){0};
	r = tl_spool_slurp(dir, "funcs", &f->text);
	if (r < 0)
		return r;
	for (rest = f->text; (line = strsep(&rest, "\n"));)
		func_line(f, line);
	return TL_OK;
}

void tl_spool_funcs_fini(struct tl_spool_funcs *f)
{
	free(f->text);
	tl_vec_fini(f);
}

uint64_t tl_spool_started(int pid)
{
	char path[64], stat[1024], *p, state = 'Z';
	unsigned long long ticks = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(stat, 1, sizeof stat - 1, f);
	fclose(f);
	stat[n] = 0;
	p = strrchr(stat, ')'); /* the name before it may hold anything */
	if (!p || sscanf(p + 1, " %c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%llu",
			 &state, &ticks) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : ticks;
}
