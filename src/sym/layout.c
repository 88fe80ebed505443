/* Where functions end, and which pieces elsewhere belong to them. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/image_priv.h"

struct layout {
	struct tl_image *img;
	const tl_sym_vec *syms;
	tl_cold_vec *colds;
};

static uint64_t limit_at(const struct tl_image *img, uint64_t at)
{
	const struct tl_text_section *sec = tl_image_section_at(img, at);
	const struct tl_segment *seg = tl_image_segment_at(img, at);
	uint64_t hi = seg ? seg->hi.u : at;

	return sec && sec->hi < hi ? sec->hi : hi;
}

static int cmp_parts(const void *a, const void *b)
{
	const struct tl_part *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Symbols of size 0 (hand-written code) reach to the next symbol; none reaches beyond its
 * section. */
static void bound_sizes(struct tl_image *img)
{
	size_t p = 0;

	for (size_t i = 0; i < img->funcs.n; i++) {
		struct tl_func *f = &img->funcs.at[i];
		uint64_t hi = limit_at(img, f->entry.u);

		if (f->size == 0) {
			while (p < img->parts.n && img->parts.at[p].lo <= f->entry.u)
				p++;
			if (i + 1 < img->funcs.n && img->funcs.at[i + 1].entry.u < hi)
				hi = img->funcs.at[i + 1].entry.u;
			if (p < img->parts.n && img->parts.at[p].lo < hi)
				hi = img->parts.at[p].lo;
			f->size = hi - f->entry.u;
		} else if (f->size > hi - f->entry.u) {
			f->size = hi - f->entry.u;
		}
	}
}

/* Cold parts are local to the file of their owner.  Files may have static functions of the
 * same name, each with its part. */
static int owner_score(const struct tl_cold *c, const struct tl_sym *s)
{
	if (s->bind == TL_BIND_LOCAL)
		return s->file == c->sym.file ? 3 : 1;
	return 2;
}

static void find_owners(struct layout *l)
{
	struct tl_strmap map = {0};

	for (size_t i = 0; i < l->colds->n; i++) {
		struct tl_cold *c = &l->colds->at[i];

		c->next = tl_strmap_get(&map, c->base);
		tl_strmap_put(&map, c->base, c);
	}
	for (size_t i = 0; map.n && i < l->syms->n; i++) {
		const struct tl_sym *s = &l->syms->at[i];

		for (struct tl_cold *c = tl_strmap_get(&map, s->raw); c; c = c->next) {
			int score = owner_score(c, s);

			if (score > c->score) {
				c->score = score;
				c->owner = i;
			}
		}
	}
	tl_strmap_fini(&map);
}

static size_t func_index(const struct tl_image *img, uint64_t entry)
{
	size_t lo = 0, hi = img->funcs.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->funcs.at[mid].entry.u < entry)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < img->funcs.n && img->funcs.at[lo].entry.u == entry ? lo : SIZE_MAX;
}

static void place_colds(struct layout *l)
{
	struct tl_image *img = l->img;

	find_owners(l);
	for (size_t i = 0; i < l->colds->n; i++) {
		const struct tl_cold *c = &l->colds->at[i];
		uint64_t lo = c->sym.value, hi = lo + c->sym.size, limit = limit_at(img, lo);
		size_t f =
		    c->owner == SIZE_MAX ? SIZE_MAX : func_index(img, l->syms->at[c->owner].value);

		tl_image_skip(img, c->sym.raw, lo,
			      f == SIZE_MAX ? "a cold part of a function that is not there"
					    : "a cold part, counted as its function's code");
		if (f == SIZE_MAX)
			continue;
		if (hi < lo || hi > limit)
			hi = limit;
		tl_vec_push(&img->parts, (struct tl_part){lo, hi, (uint32_t)f});
	}
}

/* Parts of size 0 end at the next symbol. */
static void bound_parts(struct tl_image *img)
{
	for (size_t i = 0; i < img->parts.n; i++) {
		struct tl_part *p = &img->parts.at[i];
		size_t lo = 0, hi = img->funcs.n;

		if (p->hi > p->lo)
			continue;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (img->funcs.at[mid].entry.u <= p->lo)
				lo = mid + 1;
			else
				hi = mid;
		}
		p->hi = limit_at(img, p->lo);
		if (lo < img->funcs.n && img->funcs.at[lo].entry.u < p->hi)
			p->hi = img->funcs.at[lo].entry.u;
		if (i + 1 < img->parts.n && img->parts.at[i + 1].lo < p->hi)
			p->hi = img->parts.at[i + 1].lo;
	}
}

static void add_range(struct tl_image *img, struct tl_func *f, const struct tl_part *p)
{
	uint32_t n = f->n_ranges ? f->n_ranges : 1;
	struct tl_frange *r = tl_arena_alloc(&img->arena, (n + 1) * sizeof *r);

	if (f->n_ranges)
		memcpy(r, f->ranges, n * sizeof *r);
	else
		r[0] = (struct tl_frange){f->entry, {f->entry.u + f->size}};
	r[n] = (struct tl_frange){{p->lo}, {p->hi}};
	f->ranges = r;
	f->n_ranges = n + 1;
}

/* DWARF's further ranges are parts for tl_image_func_at() too. */
static void add_dwarf_parts(struct tl_image *img)
{
	for (size_t i = 0; i < img->funcs.n; i++)
		for (uint32_t k = 1; k < img->funcs.at[i].n_ranges; k++)
			tl_vec_push(&img->parts,
				    (struct tl_part){img->funcs.at[i].ranges[k].lo.u,
						     img->funcs.at[i].ranges[k].hi.u, (uint32_t)i});
}

static void index_ends(struct tl_image *img)
{
	uint64_t end = 0;

	img->max_end = tl_calloc(img->funcs.n, sizeof *img->max_end);
	for (size_t i = 0; i < img->funcs.n; i++) {
		const struct tl_func *f = &img->funcs.at[i];

		if (f->entry.u + f->size > end)
			end = f->entry.u + f->size;
		img->max_end[i] = end;
	}
}

/* The pieces that a cold symbol names. */
static void add_cold_parts(struct layout *l)
{
	struct tl_image *img = l->img;
	size_t from = img->parts.n; /* before it: DWARF's */

	place_colds(l);
	if (img->parts.n == from)
		return;
	qsort(img->parts.at + from, img->parts.n - from, sizeof *img->parts.at, cmp_parts);
	bound_parts(img);
	for (size_t i = from; i < img->parts.n; i++)
		add_range(img, &img->funcs.at[img->parts.at[i].func], &img->parts.at[i]);
}

void tl_layout_funcs(struct tl_image *img, const tl_sym_vec *syms, tl_cold_vec *colds)
{
	struct layout l = {img, syms, colds};

	add_dwarf_parts(img);
	add_cold_parts(&l);
	if (img->parts.n)
		qsort(img->parts.at, img->parts.n, sizeof *img->parts.at, cmp_parts);
	bound_sizes(img);
	/* The main ranges were taken before sizes were bounded. */
	for (size_t i = 0; i < img->parts.n; i++) {
		struct tl_func *f = &img->funcs.at[img->parts.at[i].func];

		if (f->origin != TL_FUNC_DWARF)
			((struct tl_frange *)f->ranges)[0].hi.u = f->entry.u + f->size;
	}
	index_ends(img);
}
