#include "report/dprofpp.h"

#include <stdlib.h>
#include <string.h>

static void put_indented(struct tl_dprofpp *d, const char *name, size_t depth)
{
	for (size_t i = 0; i < depth; i++)
		fputs("   ", d->out);
	fputs(name, d->out);
}

void tl_dprofpp_flush(struct tl_dprofpp *d, struct tl_dp_tree *t)
{
	if (t->last)
		put_indented(d, t->last, t->depth);
	if (t->times > 1)
		fprintf(d->out, " (%zux)", t->times);
	putc('\n', d->out);
}

/* -T prints as it reads. -t holds a line back while its like follow; -T -t prints the tree
 * of -T and then what -t holds back at the end, which is nothing. */
void tl_dprofpp_enter(struct tl_dprofpp *d, struct tl_dp_tree *t, const char *name, size_t depth)
{
	if (d->o->on['T']) {
		put_indented(d, name, depth);
		putc('\n', d->out);
		return;
	}
	if (!d->o->on['t'])
		return;
	if (t->last && t->depth == depth && !strcmp(t->last, name)) {
		t->times++;
		return;
	}
	if (t->last)
		tl_dprofpp_flush(d, t);
	t->last = name;
	t->depth = depth;
	t->times = 1;
}

struct item {
	const struct tl_node *node;
	const char *name;
	size_t level;
};

static int by_name_reversed(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return strcmp(y->name, x->name);
}

/* How many digits tell one tick from the next. */
static int places(double hz)
{
	char s[32];

	return snprintf(s, sizeof s, "%.0f", hz - 1 < 0 ? 0.0 : (double)(long long)(hz - 1));
}

static double ticks(const struct tl_dprofpp *d, const struct tl_node *n)
{
	double v = tl_profile_ticks_rounded(&d->p, &n->total);

	return v > 0 ? v : 0;
}

static void put_node(struct tl_dprofpp *d, const struct item *it)
{
	double total = ticks(d, it->node), kids = 0, self;
	double hz = d->h->hz;
	int p = places(hz);

	for (size_t i = 0; i < it->node->kids.n; i++)
		kids += ticks(d, it->node->kids.at[i]);
	self = total > kids ? total - kids : 0;
	for (size_t i = 0; i < it->level; i++)
		fputs("  ", d->out);
	fprintf(d->out, "%s x %llu  \t%.*fs", it->name, (unsigned long long)it->node->calls, p,
		total / hz);
	if (it->node->kids.n)
		fprintf(d->out, " = (%.*f + %.*f)s", p, self / hz, p, kids / hz);
	putc('\n', d->out);
}

void tl_dprofpp_stats(struct tl_dprofpp *d)
{
	TL_VEC(struct item) todo = {0};
	struct item it = {d->p.root, "", 0};

	/* No recursion: the profile of a deep one would exhaust our stack. */
	for (bool root = true;; root = false) {
		size_t first = todo.n;

		if (!root)
			put_node(d, &it);
		for (size_t i = 0; i < it.node->kids.n; i++) {
			const struct tl_node *k = it.node->kids.at[i];
			struct item kid = {k, tl_reader_func(d->r, k->func)->name,
					   it.level + !root};

			tl_vec_push(&todo, kid);
		}
		if (todo.n > first)
			qsort(todo.at + first, todo.n - first, sizeof *todo.at, by_name_reversed);
		if (!todo.n)
			break;
		it = todo.at[--todo.n];
	}
	tl_vec_fini(&todo);
}
