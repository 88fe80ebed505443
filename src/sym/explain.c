/* Why a selection came out empty, and what would not have. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "sym/pattern.h"
#include "sym/select_priv.h"

enum { BEST = 5, WORD_MAX = 64 };

struct near {
	const struct tl_func *func;
	unsigned distance;
};

struct best {
	struct near at[BEST];
	size_t n;
};

/* Edits from A to B, at most LIMIT + 1. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb, unsigned limit)
{
	unsigned row[WORD_MAX + 1];

	if (na > WORD_MAX || nb > na + limit || na > nb + limit)
		return limit + 1;
	for (size_t i = 0; i <= na; i++)
		row[i] = (unsigned)i;
	for (size_t j = 1; j <= nb; j++) {
		unsigned diagonal = row[0], least = row[0] = (unsigned)j;

		for (size_t i = 1; i <= na; i++) {
			unsigned up = row[i], v = diagonal + (a[i - 1] != b[j - 1]);

			if (up + 1 < v)
				v = up + 1;
			if (row[i - 1] + 1 < v)
				v = row[i - 1] + 1;
			diagonal = up;
			row[i] = v;
			if (v < least)
				least = v;
		}
		if (least > limit)
			return limit + 1;
	}
	return row[na];
}

static const char *last_part(const char *name)
{
	const char *part = name;

	for (const char *p = name; *p && *p != '<' && *p != '('; p++)
		if (p[0] == ':' && p[1] == ':' && p[2])
			part = p + 2;
	return part;
}

static void consider(struct best *b, const struct tl_func *f, unsigned d)
{
	size_t i = b->n < BEST ? b->n++ : BEST;

	while (i > 0 && d < b->at[i - 1].distance) {
		if (i < BEST)
			b->at[i] = b->at[i - 1];
		i--;
	}
	if (i < BEST)
		b->at[i] = (struct near){f, d};
}

static void nearest(struct best *b, const char *word, struct tl_image *img)
{
	size_t len = strlen(word), n;
	unsigned limit = len < 4 ? 1 : len < 8 ? 2 : 3;
	const struct tl_func *f;

	n = tl_image_funcs(img, &f);
	for (size_t i = 0; i < n; i++) {
		const char *part = last_part(f[i].bare);
		unsigned d = distance(word, len, f[i].bare, strlen(f[i].bare), limit);

		if (d > limit && part != f[i].bare)
			d = distance(word, len, part, strlen(part), limit);
		if (d <= limit)
			consider(b, &f[i], d);
	}
}

static bool has_symbols(struct tl_image *img)
{
	const struct tl_func *f;
	size_t n = tl_image_funcs(img, &f);

	for (size_t i = 0; i < n; i++)
		if (f[i].origin != TL_FUNC_EH_FRAME && f[i].origin != TL_FUNC_DYNSYM)
			return true;
	return false;
}

static void say_nearest(struct tl_strbuf *out, const struct tl_pattern *p,
			struct tl_image *const *images, size_t n)
{
	const char *word = tl_pattern_word(p);
	struct best b = {.n = 0};

	for (size_t i = 0; word && i < n; i++)
		nearest(&b, word, images[i]);
	for (size_t i = 0; i < b.n; i++)
		tl_strbuf_printf(out, "%s%s (%s)",
				 i ? ", " : "; the nearest names: ", b.at[i].func->name,
				 tl_image_short_name(b.at[i].func->image));
}

/* Names that match, in modules that were not selected. */
static void say_elsewhere(struct tl_strbuf *out, const struct tl_select *s,
			  const struct tl_pattern *p, struct tl_image *const *images, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct tl_func *f, *first = NULL;
		size_t k = tl_image_funcs(images[i], &f), count = 0;
		const char *name = tl_image_short_name(images[i]);

		if (tl_select_by_library(s, images[i], tl_image_is_program(images[i])))
			continue;
		for (size_t j = 0; j < k; j++)
			if (tl_pattern_matches_name(p, &f[j])) {
				first = first ? first : &f[j];
				count++;
			}
		if (count == 1)
			tl_strbuf_printf(out, "; %s has %s: add -l %s", name, first->name, name);
		else if (count)
			tl_strbuf_printf(out,
					 "; %s has %zu such functions, %s the first: add -l %s",
					 name, count, first->name, name);
	}
}

static void say_no_symbols(struct tl_strbuf *out, const struct tl_select *s,
			   struct tl_image *const *images, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *id = tl_image_build_id(images[i]);

		if (!tl_select_module(s, images[i], tl_image_is_program(images[i])) ||
		    has_symbols(images[i]))
			continue;
		tl_strbuf_printf(out,
				 "; %s has no symbols of its own functions: install its "
				 "debug symbols (Debian: the -dbgsym or -dbg package",
				 tl_image_path(images[i]));
		if (*id)
			tl_strbuf_printf(out, "; the file /usr/lib/debug/.build-id/%.2s/%s.debug",
					 id, id + 2);
		tl_strbuf_puts(out, ") or build it without stripping");
	}
}

static void say_libraries(struct tl_strbuf *out, const struct tl_select *s,
			  struct tl_image *const *images, size_t n)
{
	const tl_pattern_vec *l = &s->by[TL_SELECT_LIBRARY];

	for (size_t i = 0; i < l->n; i++) {
		bool any = false;

		for (size_t k = 0; k < n && !any; k++)
			any = tl_pattern_is_module(l->at[i], images[k],
						   tl_image_is_program(images[k]));
		if (any)
			continue;
		tl_strbuf_printf(out,
				 "; -l %s is none of the modules:", tl_pattern_text(l->at[i]));
		for (size_t k = 0; k < n; k++)
			tl_strbuf_printf(out, "%s %s", k ? "," : "",
					 tl_image_short_name(images[k]));
	}
}

static void say_source(struct tl_strbuf *out, const struct tl_select *s,
		       struct tl_image *const *images, size_t n)
{
	for (size_t i = 0; s->by[TL_SELECT_SOURCE].n && i < n; i++)
		if (tl_select_module(s, images[i], tl_image_is_program(images[i])) &&
		    !tl_image_has_dwarf(images[i]))
			tl_strbuf_printf(out,
					 "; %s has no debug information, which --source needs",
					 tl_image_path(images[i]));
}

static bool matches_somewhere(const struct tl_select *s, const struct tl_pattern *p,
			      struct tl_image *const *images, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_main = tl_image_is_program(images[i]);
		const struct tl_func *f;
		size_t k;

		if (!tl_select_module(s, images[i], is_main))
			continue;
		k = tl_image_funcs(images[i], &f);
		for (size_t j = 0; j < k; j++)
			if (tl_pattern_matches(p, &f[j], is_main))
				return true;
	}
	return false;
}

char *tl_select_explain(const struct tl_select *s, struct tl_image *const *images, size_t n)
{
	const tl_pattern_vec *v = &s->by[TL_SELECT_FUNCTION];
	struct tl_strbuf out = {0};

	tl_strbuf_puts(&out, "no function to watch");
	for (size_t i = 0; i < v->n; i++) {
		if (matches_somewhere(s, v->at[i], images, n)) {
			tl_strbuf_printf(&out,
					 "; -f %s matches, but -x or --source leaves nothing",
					 tl_pattern_text(v->at[i]));
			continue;
		}
		tl_strbuf_printf(&out, "; nothing matches -f %s", tl_pattern_text(v->at[i]));
		say_nearest(&out, v->at[i], images, n);
		say_elsewhere(&out, s, v->at[i], images, n);
	}
	say_libraries(&out, s, images, n);
	say_source(&out, s, images, n);
	say_no_symbols(&out, s, images, n);
	return tl_strbuf_take(&out);
}
