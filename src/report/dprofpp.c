#include "report/dprofpp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int clock_of(const struct tl_dprofpp_options *o)
{
	return o->on['u'] ? TL_USER : o->on['s'] ? TL_SYS : o->on['r'] ? TL_WALL : TL_CPU;
}

static bool tree_only(const struct tl_dprofpp *d)
{
	return d->o->on['T'] || d->o->on['t'];
}

static int read_marks(struct tl_dprofpp *d)
{
	struct tl_dp_tree t = {0};
	struct tl_event e;
	unsigned did;
	int err;

	do {
		err = tl_reader_next(d->r, &e);
		if (!err)
			err = tl_profile_feed(&d->p, &e, &did);
		if (!err && did & TL_DID_ENTER)
			tl_dprofpp_enter(d, &t, tl_reader_func(d->r, e.func)->name,
					 d->p.stack.n - 1);
	} while (!err && e.kind != TL_EVENT_END);
	if (!err && d->o->on['t'])
		tl_dprofpp_flush(d, &t);
	return err;
}

/* Frames that never ended: named, and with -F ended now. */
static int close_open(struct tl_dprofpp *d)
{
	struct tl_row **list;
	size_t n = tl_profile_list(&d->p, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i]->open)
			fprintf(d->err, "%s has %lld unstacked calls in outer\n", list[i]->name,
				(long long)list[i]->open);
	free(list);
	n = d->p.stack.n;
	if (!n)
		return TL_OK;
	if (d->o->on['F']) {
		fprintf(d->err, "Faking %zu exit timestamp(s).\n", n);
		return tl_profile_close(&d->p);
	}
	fputs("Garbled profile is missing some exit time stamps:\n", d->err);
	for (size_t i = 0; i < n; i++)
		fprintf(d->out, "%s\n", tl_reader_func(d->r, d->p.stack.at[i].func)->name);
	return tl_fail(-EBADMSG, "Try rerunning dprofpp with -F.");
}

static void make_rows(struct tl_dprofpp *d)
{
	struct tl_row **list;
	size_t n = tl_profile_list(&d->p, &list);

	for (size_t i = 0; i < n; i++) {
		struct tl_dp_row row = {
		    .name = list[i]->name,
		    .calls = list[i]->calls,
		    .self = tl_profile_ticks_rounded(&d->p, &list[i]->self),
		    .total = tl_profile_ticks_rounded(&d->p, &list[i]->total),
		    .order = list[i]->order,
		};

		tl_vec_push(&d->rows, row);
	}
	free(list);
}

static void run_time(struct tl_dprofpp *d)
{
	const double *run = d->h->run;
	const struct tl_row *inside = NULL;
	double ticks;

	d->overhead = d->p.over; /* what was spent writing is in it */
	ticks = d->clock == TL_CPU ? run[TL_USER] + run[TL_SYS] : run[d->clock];
	ticks -= d->overhead;
	if (d->o->arg['g']) {
		inside = tl_profile_find(&d->p, d->o->arg['g']);
		ticks = inside ? tl_profile_ticks_rounded(&d->p, &inside->total) : 0;
	}
	d->run = ticks > 0 ? ticks / d->h->hz : 0;
}

struct order {
	char key; /* v a l I, or 0: self time */
	bool inclusive, reverse;
	double hz;
};

static double sort_value(const struct tl_dp_row *r, const struct order *o)
{
	switch (o->key) {
	case 'v':
		return r->calls ? (o->inclusive ? r->total : r->self) / o->hz / r->calls : 0;
	case 'l':
		return r->calls;
	default:
		return o->inclusive ? r->total : r->self;
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct tl_dp_row *x = a, *y = b;
	const struct order *o = arg;
	int c;

	if (o->key == 'a') {
		c = strcmp(x->name, y->name);
	} else {
		double v = sort_value(x, o), w = sort_value(y, o);

		c = v > w ? -1 : v < w;
	}
	if (c)
		return o->reverse ? -c : c;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct tl_dprofpp *d)
{
	struct order o = {0, d->o->on['I'], d->o->on['d'], d->h->hz};

	if (d->o->on['U'] || !d->rows.n)
		return;
	o.key = d->o->on['v'] ? 'v' : d->o->on['a'] ? 'a' : d->o->on['l'] ? 'l' : 0;
	qsort_r(d->rows.at, d->rows.n, sizeof *d->rows.at, compare, &o);
}

static int report(struct tl_dprofpp *d)
{
	int err = read_marks(d);

	if (!err)
		err = close_open(d);
	if (err)
		return err;
	make_rows(d);
	err = tl_dprofpp_filter(d);
	if (!err)
		err = tl_dprofpp_group(d);
	if (err || tree_only(d))
		return err;
	if (d->h->hz == 0 && d->rows.n)
		return tl_fail(-EBADMSG, "%s: $hz is missing or 0: no time can be told",
			       tl_reader_path(d->r));
	run_time(d);
	sort(d);
	if (d->o->on['S'])
		tl_dprofpp_stats(d);
	else
		tl_dprofpp_table(d);
	return TL_OK;
}

static int version(struct tl_dprofpp *d, const char *path)
{
	int err;

	fputs("dprofpp version: 20110802.00\n", d->out);
	err = tl_reader_open(path, 0, &d->r);
	if (err == -EBADMSG)
		return err;
	if (!err) {
		const char *xs = tl_reader_header(d->r)->xs_version;

		fprintf(d->out, "XS_VERSION: %s\n", xs ? xs : "early");
	}
	return TL_OK;
}

static int with_options(struct tl_dprofpp *d, const char *path)
{
	struct tl_profile_options po = {
	    .tree = d->o->on['S'],
	    .tree_by_enter = d->o->on['A'],
	    .inside = d->o->arg['g'],
	    .arg = d,
	    .clock = d->clock,
	};
	int err = tl_dprofpp_group_open(d);

	if (err)
		return err;
	err = tl_reader_open(path, d->o->on['R'] ? TL_READ_IDS : 0, &d->r);
	if (err)
		return err;
	if (d->group)
		po.mismatch = tl_dprofpp_mismatch;
	d->h = tl_reader_header(d->r);
	tl_profile_init(&d->p, d->r, &po);
	err = report(d);
	tl_profile_fini(&d->p);
	return err;
}

int tl_dprofpp_run(const struct tl_dprofpp_options *o, FILE *out, FILE *err)
{
	struct tl_dprofpp d = {.o = o, .out = out, .err = err, .clock = clock_of(o)};
	const char *path = o->profile ? o->profile : "tmon.out";
	int failed = o->on['V'] ? version(&d, path) : with_options(&d, path);

	fflush(out);
	if (failed)
		fprintf(err, "%s\n", tl_error_text());
	tl_dprofpp_group_close(&d);
	tl_vec_fini(&d.rows);
	tl_reader_free(d.r);
	if (!failed)
		return 0;
	return failed == -ENOENT ? ENOENT : TL_DPROFPP_DIED;
}
