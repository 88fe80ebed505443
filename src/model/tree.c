#include "model/tree.h"

#include <stdlib.h>

/* From so many children on they are looked up in a table. */
enum { MANY = 16 };

struct tl_node *tl_node_new(struct tl_profile *p)
{
	struct tl_node *n = p->spare;

	if (!n)
		return tl_calloc(1, sizeof *n);
	p->spare = n->kids.n ? n->kids.at[--n->kids.n] : NULL;
	tl_vec_fini(&n->kids);
	memset(n, 0, sizeof *n);
	return n;
}

/* The spare ones are a chain, each the child of the one before. */
static void put_away(struct tl_profile *p, struct tl_node *n)
{
	if (n->by_func)
		tl_map_fini(n->by_func);
	free(n->by_func);
	n->by_func = NULL;
	n->kids.n = 0;
	if (p->spare)
		tl_vec_push(&n->kids, p->spare);
	p->spare = n;
}

static struct tl_node *kid_of(const struct tl_node *n, uint32_t func)
{
	if (n->by_func)
		return tl_map_get(n->by_func, func);
	for (size_t i = 0; i < n->kids.n; i++)
		if (n->kids.at[i]->func == func)
			return n->kids.at[i];
	return NULL;
}

static void adopt(struct tl_node *n, struct tl_node *kid)
{
	tl_vec_push(&n->kids, kid);
	if (n->by_func) {
		tl_map_put(n->by_func, kid->func, kid);
	} else if (n->kids.n == MANY) {
		n->by_func = tl_calloc(1, sizeof *n->by_func);
		for (size_t i = 0; i < n->kids.n; i++)
			tl_map_put(n->by_func, n->kids.at[i]->func, n->kids.at[i]);
	}
}

static void add(struct tl_node *to, const struct tl_node *from)
{
	to->calls += from->calls;
	for (unsigned c = 0; c < TL_CLOCKS; c++)
		to->total.in[c] =
		    (int64_t)((uint64_t)to->total.in[c] + (uint64_t)from->total.in[c]);
	to->total.marks += from->total.marks;
	to->total.ticks += from->total.ticks;
}

void tl_node_merge(struct tl_profile *p, struct tl_node *parent, struct tl_node *node)
{
	struct pair {
		struct tl_node *parent, *node;
	};
	TL_VEC(struct pair) todo = {0};

	/* No recursion here: the profile of a deep one would exhaust our stack. */
	for (struct pair w = {parent, node};; w = todo.at[--todo.n]) {
		struct tl_node *same = kid_of(w.parent, w.node->func);

		if (!same) {
			adopt(w.parent, w.node);
		} else {
			add(same, w.node);
			for (size_t i = 0; i < w.node->kids.n; i++)
				tl_vec_push(&todo, (struct pair){same, w.node->kids.at[i]});
			put_away(p, w.node);
		}
		if (!todo.n)
			break;
	}
	tl_vec_fini(&todo);
}

void tl_node_free(struct tl_node *node)
{
	TL_VEC(struct tl_node *) todo = {0};

	if (node)
		tl_vec_push(&todo, node);
	while (todo.n) {
		struct tl_node *n = todo.at[--todo.n];

		for (size_t i = 0; i < n->kids.n; i++)
			tl_vec_push(&todo, n->kids.at[i]);
		if (n->by_func)
			tl_map_fini(n->by_func);
		free(n->by_func);
		tl_vec_fini(&n->kids);
		free(n);
	}
	tl_vec_fini(&todo);
}
