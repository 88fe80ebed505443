#include "model/profile.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "model/tree.h"

/* Clock readings may wrap round, and damaged files hold anything; differences of what is
 * sound come out right. */
static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void span_add(struct tl_span *to, const struct tl_span *s)
{
	for (unsigned c = 0; c < TL_CLOCKS; c++)
		to->in[c] = plus(to->in[c], s->in[c]);
	to->marks += s->marks;
	to->ticks += s->ticks;
}

static struct tl_span span_less(const struct tl_span *a, const struct tl_span *b)
{
	struct tl_span s;

	for (unsigned c = 0; c < TL_CLOCKS; c++)
		s.in[c] = minus(a->in[c], b->in[c]);
	s.marks = a->marks - b->marks;
	s.ticks = a->ticks - b->ticks;
	return s;
}

int64_t tl_span_units(const struct tl_span *s, int clock)
{
	return clock == TL_CPU ? plus(s->in[TL_USER], s->in[TL_SYS]) : s->in[clock];
}

/* Whole ticks are divided as such: beyond 2^53 units a double is not exact. */
static double ticks_of(const struct tl_header *h, int64_t units)
{
	int64_t scale = h->units_per_tick;

	return units % scale ? units / (double)scale : (double)(units / scale);
}

static double mark_cost(const struct tl_header *h, int clock)
{
	double over = clock == TL_CPU ? h->over[TL_USER] + h->over[TL_SYS] : h->over[clock];

	return over / (2 * h->over_tests);
}

double tl_profile_ticks(const struct tl_header *h, const struct tl_span *s, int clock)
{
	return ticks_of(h, tl_span_units(s, clock)) - mark_cost(h, clock) * s->marks;
}

double tl_profile_ticks_rounded(const struct tl_profile *p, const struct tl_span *s)
{
	if (p->over_mark == 0) /* exact, then, however large */
		return ticks_of(tl_reader_header(p->r), tl_span_units(s, p->o.clock));
	return s->ticks;
}

void tl_profile_init(struct tl_profile *p, struct tl_reader *r, const struct tl_profile_options *o)
{
	memset(p, 0, sizeof *p);
	p->o = *o;
	p->r = r;
	p->write_func = -1;
	p->over_mark = mark_cost(tl_reader_header(r), o->clock);
	if (o->tree)
		p->root = tl_node_new(p);
}

/* Pointers last until the next new function. */
static struct tl_row *row_of(struct tl_profile *p, uint32_t func)
{
	while (p->rows.n <= func) {
		struct tl_row row = {.func = p->rows.n,
				     .name = tl_reader_func(p->r, p->rows.n)->name};

		if (!strcmp(row.name, "Devel::DProf::write"))
			p->write_func = row.func;
		tl_vec_push(&p->rows, row);
	}
	return &p->rows.at[func];
}

static void enter(struct tl_profile *p, uint32_t func, unsigned flags)
{
	struct tl_row *row = row_of(p, func);
	struct tl_open_call f = {.func = func, .since = p->now};

	if (!row->calls) {
		row->order = p->entered++;
		memset(&row->self, 0, sizeof row->self);
		memset(&row->total, 0, sizeof row->total);
	}
	row->calls++;
	row->open++;
	row->synthetic += flags & TL_MARK_SYNTHETIC ? 1 : 0;
	if (p->o.tree)
		f.node = tl_node_new(p);
	tl_vec_push(&p->stack, f);
}

static void file_node(struct tl_profile *p, struct tl_open_call *f, uint32_t func,
		      const struct tl_span *z)
{
	struct tl_node *to = p->stack.n ? p->stack.at[p->stack.n - 1].node : p->root;

	f->node->func = p->o.tree_by_enter ? f->func : func;
	f->node->calls = 1;
	f->node->total = *z;
	tl_node_merge(p, to, f->node);
}

/* CREDIT gets the time of the top frame, the tree calls it IN_TREE. */
static int leave(struct tl_profile *p, uint32_t credit, uint32_t in_tree, uint64_t line)
{
	struct tl_span z, self;
	struct tl_open_call f;
	struct tl_row *row;

	if (!p->stack.n)
		return tl_fail(-EBADMSG, "%s:%llu: Garbled profile, missing an enter time stamp",
			       tl_reader_path(p->r), (unsigned long long)line);
	f = p->stack.at[--p->stack.n];
	z = span_less(&p->now, &f.since);
	self = span_less(&z, &f.kids);
	row = row_of(p, credit);
	row->open--;
	if (row->open == 0)
		span_add(&row->total, &z);
	span_add(&row->self, &self);
	if (p->stack.n)
		span_add(&p->stack.at[p->stack.n - 1].kids, &z);
	if (p->o.tree)
		file_node(p, &f, in_tree, &z);
	return TL_OK;
}

static void clock_read(struct tl_profile *p, const struct tl_event *e)
{
	struct tl_span at = {.marks = p->now.marks};

	memcpy(at.in, e->at, sizeof at.in);
	p->now = span_less(&at, &p->written);
	p->now.marks = at.marks;
	p->now.ticks = ticks_of(tl_reader_header(p->r), tl_span_units(&at, p->o.clock)) - p->over;
}

static void count_mark(struct tl_profile *p)
{
	p->now.marks++;
	p->over += p->over_mark;
}

/* The marks around the writer's own flushing: its time is nobody's. dprofpp takes the
 * pair for one mark. */
static void write_mark(struct tl_profile *p, const struct tl_event *e)
{
	struct tl_span passed = {.marks = 0};

	if (e->kind != TL_EVENT_ENTER)
		count_mark(p);
	for (unsigned c = 0; c < TL_CLOCKS; c++) {
		if (e->kind == TL_EVENT_ENTER)
			p->write_from[c] = e->at[c];
		else
			passed.in[c] = minus(e->at[c], p->write_from[c]);
	}
	span_add(&p->written, &passed);
	p->over += ticks_of(tl_reader_header(p->r), tl_span_units(&passed, p->o.clock));
	clock_read(p, e);
}

static int leave_marked(struct tl_profile *p, const struct tl_event *e)
{
	const struct tl_open_call *top = p->stack.n ? &p->stack.at[p->stack.n - 1] : NULL;
	uint32_t credit = e->func, in_tree = e->func;

	if (top && e->kind == TL_EVENT_DIE) {
		credit = in_tree = top->func;
	} else if (top && top->func != e->func && p->o.mismatch) {
		bool credit_top = false;
		int err = p->o.mismatch(p->o.arg, tl_reader_func(p->r, top->func)->name,
					tl_reader_func(p->r, e->func)->name, &credit_top);

		if (err)
			return err;
		if (credit_top)
			credit = in_tree = top->func;
	}
	if (top && e->kind == TL_EVENT_GOTO)
		in_tree = top->func;
	p->forced += e->flags & TL_MARK_FORCED ? 1 : 0;
	p->unwound += e->flags & TL_MARK_UNWOUND ? 1 : 0;
	return leave(p, credit, in_tree, e->line);
}

/* Whether the mark is made inside the function asked for. */
static bool within(struct tl_profile *p, const struct tl_event *e)
{
	bool itself;

	if (!p->o.inside)
		return true;
	itself =
	    e->kind != TL_EVENT_DIE && !strcmp(tl_reader_func(p->r, e->func)->name, p->o.inside);
	if (e->kind == TL_EVENT_DIE && p->level && p->stack.n)
		itself = !strcmp(tl_reader_func(p->r, p->stack.at[p->stack.n - 1].func)->name,
				 p->o.inside);
	if (!itself)
		return p->level != 0;
	if (e->kind == TL_EVENT_ENTER)
		p->level++;
	else if (e->kind != TL_EVENT_GOTO)
		p->level--;
	return true;
}

int tl_profile_feed(struct tl_profile *p, const struct tl_event *e, unsigned *did)
{
	int err;

	*did = 0;
	if (e->kind == TL_EVENT_TASK)
		p->tasks++;
	if (e->kind == TL_EVENT_END)
		clock_read(p, e);
	if (e->kind > TL_EVENT_DIE)
		return TL_OK;
	if (e->kind != TL_EVENT_DIE) {
		row_of(p, e->func);
		if (e->func == p->write_func) {
			write_mark(p, e);
			return TL_OK;
		}
	}
	if (!within(p, e))
		return TL_OK;
	count_mark(p);
	clock_read(p, e);
	if (e->kind != TL_EVENT_ENTER) {
		err = leave_marked(p, e);
		if (err)
			return err;
		*did |= TL_DID_EXIT;
	}
	if (e->kind == TL_EVENT_GOTO) {
		count_mark(p);
		clock_read(p, e);
	}
	if (e->kind == TL_EVENT_ENTER || e->kind == TL_EVENT_GOTO) {
		enter(p, e->func, e->flags);
		*did |= TL_DID_ENTER;
	}
	return TL_OK;
}

int tl_profile_close(struct tl_profile *p)
{
	int err = TL_OK;

	while (p->stack.n && !err) {
		uint32_t func = p->stack.at[p->stack.n - 1].func;

		err = leave(p, func, func, 0);
	}
	return err;
}

int tl_profile_read(struct tl_profile *p)
{
	struct tl_event e;
	unsigned did;
	int err;

	do {
		err = tl_reader_next(p->r, &e);
		if (!err)
			err = tl_profile_feed(p, &e, &did);
	} while (!err && e.kind != TL_EVENT_END);
	return err ? err : tl_profile_close(p);
}

static int by_order(const void *a, const void *b)
{
	const struct tl_row *x = *(struct tl_row *const *)a, *y = *(struct tl_row *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

size_t tl_profile_list(struct tl_profile *p, struct tl_row ***list)
{
	size_t n = 0;

	*list = tl_calloc(p->entered + 1, sizeof **list);
	for (size_t i = 0; i < p->rows.n; i++)
		if (p->rows.at[i].calls)
			(*list)[n++] = &p->rows.at[i];
	qsort(*list, n, sizeof **list, by_order);
	return n;
}

struct tl_row *tl_profile_find(struct tl_profile *p, const char *name)
{
	for (size_t i = 0; i < p->rows.n; i++)
		if (p->rows.at[i].calls && !strcmp(p->rows.at[i].name, name))
			return &p->rows.at[i];
	return NULL;
}

void tl_profile_fini(struct tl_profile *p)
{
	for (size_t i = 0; i < p->stack.n; i++)
		tl_node_free(p->stack.at[i].node);
	tl_node_free(p->root);
	tl_node_free(p->spare);
	tl_vec_fini(&p->stack);
	tl_vec_fini(&p->rows);
	memset(p, 0, sizeof *p);
}
