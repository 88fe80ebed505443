#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "report/heading.h"

const char *const tl_report_sort_names[TL_SORTS + 1] = {
    "cpu", "cpu-total", "wall", "wall-total", "calls", "per-call", "name", NULL,
};

/* A function, in ns. */
struct line {
	const struct tl_function_info *func;
	uint64_t calls;
	double cpu, cpu_total, wall, wall_total, per_call;
	size_t order;
};

enum { CALLS, PERCENT, CPU, CPU_TOTAL, WALL, WALL_TOTAL, PER_CALL, COLUMNS };

static double ns(const struct tl_profile *p, const struct tl_span *s, int clock)
{
	const struct tl_header *h = tl_reader_header(p->r);
	double ticks = tl_profile_ticks(h, s, clock);

	return ticks > 0 ? ticks / h->hz * 1e9 : 0;
}

static size_t make_lines(struct tl_profile *p, struct line **out)
{
	struct tl_row **rows;
	size_t n = tl_profile_list(p, &rows);
	struct line *l = tl_calloc(n + 1, sizeof *l);

	for (size_t i = 0; i < n; i++) {
		const struct tl_row *r = rows[i];

		l[i] = (struct line){
		    .func = tl_reader_func(p->r, r->func),
		    .calls = r->calls - r->synthetic,
		    .cpu = ns(p, &r->self, TL_CPU),
		    .cpu_total = ns(p, &r->total, TL_CPU),
		    .wall = ns(p, &r->self, TL_WALL),
		    .wall_total = ns(p, &r->total, TL_WALL),
		    .order = i,
		};
		l[i].per_call = l[i].cpu_total / (l[i].calls ? l[i].calls : 1);
	}
	free(rows);
	*out = l;
	return n;
}

static double sort_value(const struct line *l, enum tl_report_sort sort)
{
	switch (sort) {
	case TL_SORT_CPU_TOTAL:
		return l->cpu_total;
	case TL_SORT_WALL:
		return l->wall;
	case TL_SORT_WALL_TOTAL:
		return l->wall_total;
	case TL_SORT_CALLS:
		return l->calls;
	case TL_SORT_PER_CALL:
		return l->per_call;
	default:
		return l->cpu;
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	enum tl_report_sort sort = *(enum tl_report_sort *)arg;
	double v = sort_value(x, sort), w = sort_value(y, sort);
	int c = sort == TL_SORT_NAME ? strcmp(x->func->name, y->func->name) : v > w ? -1 : v < w;

	return c ? c : x->order < y->order ? -1 : x->order > y->order;
}

/* Self time, of what the table is sorted by, as a part of the run. */
static double percent(const struct line *l, const struct tl_header *h, enum tl_report_sort sort)
{
	bool wall = sort == TL_SORT_WALL || sort == TL_SORT_WALL_TOTAL;
	double run = wall ? h->run[TL_WALL] : h->run[TL_USER] + h->run[TL_SYS];

	return run > 0 ? (wall ? l->wall : l->cpu) / 1e9 * h->hz / run * 100 : 0;
}

static void cells(struct tl_text *c, const struct line *l, const struct tl_header *h,
		  enum tl_report_sort sort)
{
	enum tl_self self = l->func->self;

	c[CALLS] = tl_format_calls(l->calls, l->func->how);
	snprintf(c[PERCENT].s, sizeof c[PERCENT].s, "%.1f", percent(l, h, sort));
	c[CPU] = tl_format_self(l->cpu, self);
	c[CPU_TOTAL] = tl_format_time(l->cpu_total);
	c[WALL] = tl_format_self(l->wall, self);
	c[WALL_TOTAL] = tl_format_time(l->wall_total);
	c[PER_CALL] = tl_format_time(l->per_call);
	if (l->func->how == TL_HOW_SAMPLED || !l->calls)
		snprintf(c[PER_CALL].s, sizeof c[PER_CALL].s, "-");
}

/* Names come from files of others, and the report may go to a terminal. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		putc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, out);
	putc('\n', out);
}

static void put_table(FILE *out, const struct line *l, size_t n, const struct tl_header *h,
		      enum tl_report_sort sort)
{
	static const char *const titles[COLUMNS] = {
	    "calls", "%", "CPU self", "CPU total", "wall self", "wall total", "CPU/call",
	};
	struct tl_text c[COLUMNS];
	unsigned width[COLUMNS];

	for (unsigned k = 0; k < COLUMNS; k++)
		width[k] = tl_format_width(titles[k]);
	for (size_t i = 0; i < n; i++) {
		cells(c, &l[i], h, sort);
		for (unsigned k = 0; k < COLUMNS; k++)
			if (tl_format_width(c[k].s) > width[k])
				width[k] = tl_format_width(c[k].s);
	}
	for (unsigned k = 0; k < COLUMNS; k++)
		tl_format_right(out, titles[k], width[k] + (k ? 2 : 0));
	fputs("  name\n", out);
	for (size_t i = 0; i < n; i++) {
		cells(c, &l[i], h, sort);
		for (unsigned k = 0; k < COLUMNS; k++)
			tl_format_right(out, c[k].s, width[k] + (k ? 2 : 0));
		fputs("  ", out);
		put_name(out, l[i].func->name);
	}
}

static void print(struct tl_profile *p, const struct tl_facts *f, const struct tl_report_options *o,
		  FILE *out)
{
	static const char *const by[TL_SORTS] = {
	    "CPU self time", "CPU total time",	  "wall self time", "wall total time",
	    "calls",	     "CPU time per call", "name",
	};
	enum tl_report_sort sort = o->sort;
	struct line *l;
	size_t n = make_lines(p, &l), shown = o->limit && o->limit < n ? o->limit : n;

	tl_facts_print(f, p, out);
	if (!n) {
		fputs("  no function was called\n", out);
	} else {
		qsort_r(l, n, sizeof *l, compare, &sort);
		fprintf(out, "  %zu of %zu function%s, by %s\n\n", shown, n, n == 1 ? "" : "s",
			by[sort]);
		put_table(out, l, shown, tl_reader_header(p->r), sort);
	}
	free(l);
}

static int read_all(struct tl_profile *p, struct tl_facts *f)
{
	struct tl_event e;
	unsigned did;
	int err;

	do {
		err = tl_reader_next(p->r, &e);
		if (err)
			return err;
		tl_facts_note(f, &e);
		err = tl_profile_feed(p, &e, &did);
	} while (!err && e.kind != TL_EVENT_END);
	return err ? err : tl_profile_close(p);
}

int tl_report_print(const char *path, const struct tl_report_options *o, FILE *out)
{
	struct tl_profile_options po = {0};
	struct tl_facts f = {0};
	struct tl_profile p;
	struct tl_reader *r;
	int err = tl_reader_open(path, 0, &r);

	if (err)
		return err;
	tl_profile_init(&p, r, &po);
	if (!(tl_reader_header(r)->hz > 0))
		err = tl_fail(-EBADMSG, "%s: $hz is missing or not positive: no time can be told",
			      path);
	if (!err)
		err = read_all(&p, &f);
	if (!err)
		print(&p, &f, o, out);
	tl_facts_fini(&f);
	tl_profile_fini(&p);
	tl_reader_free(r);
	return err;
}
