#include "sym/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/pattern.h"
#include "sym/select_priv.h"

struct tl_select *tl_select_new(void)
{
	return tl_calloc(1, sizeof(struct tl_select));
}

void tl_select_free(struct tl_select *s)
{
	if (!s)
		return;
	for (size_t k = 0; k < TL_SELECT_KINDS; k++) {
		for (size_t i = 0; i < s->by[k].n; i++)
			tl_pattern_free(s->by[k].at[i]);
		tl_vec_fini(&s->by[k]);
	}
	free(s);
}

int tl_select_add(struct tl_select *s, enum tl_select_kind kind, const char *pattern)
{
	struct tl_pattern *p;
	int r = tl_pattern_new(pattern, &p);

	if (r == TL_OK)
		tl_vec_push(&s->by[kind], p);
	return r;
}

/* By -l, or for want of one. */
bool tl_select_by_library(const struct tl_select *s, const struct tl_image *img, bool is_main)
{
	const tl_pattern_vec *l = &s->by[TL_SELECT_LIBRARY];

	for (size_t i = 0; i < l->n; i++)
		if (tl_pattern_is_module(l->at[i], img, is_main))
			return true;
	return l->n == 0 && is_main;
}

bool tl_select_module(const struct tl_select *s, const struct tl_image *img, bool is_main)
{
	const tl_pattern_vec *f = &s->by[TL_SELECT_FUNCTION];

	if (tl_select_by_library(s, img, is_main))
		return true;
	for (size_t i = 0; i < f->n; i++)
		if (tl_pattern_names_module(f->at[i], img, is_main))
			return true;
	return false;
}

bool tl_select_libraries(const struct tl_select *s)
{
	const tl_pattern_vec *f = &s->by[TL_SELECT_FUNCTION];

	if (s->by[TL_SELECT_LIBRARY].n)
		return true;
	for (size_t i = 0; i < f->n; i++)
		if (strstr(tl_pattern_text(f->at[i]), "::"))
			return true;
	return false;
}

static bool wanted(const struct tl_select *s, const struct tl_func *f, bool is_main)
{
	const tl_pattern_vec *v = &s->by[TL_SELECT_FUNCTION];
	bool by_library = tl_select_by_library(s, f->image, is_main);

	if (v->n == 0)
		return by_library;
	for (size_t i = 0; i < v->n; i++) {
		if (by_library && tl_pattern_matches_name(v->at[i], f))
			return true;
		if (tl_pattern_names_module(v->at[i], f->image, is_main) &&
		    tl_pattern_matches_rest(v->at[i], f))
			return true;
	}
	return false;
}

static bool excluded(const struct tl_select *s, const struct tl_func *f, bool is_main)
{
	const tl_pattern_vec *v = &s->by[TL_SELECT_EXCLUDE];

	for (size_t i = 0; i < v->n; i++)
		if (tl_pattern_matches(v->at[i], f, is_main))
			return true;
	return false;
}

static bool from_source(const struct tl_select *s, const struct tl_func *f)
{
	const tl_pattern_vec *v = &s->by[TL_SELECT_SOURCE];
	const char *file;
	unsigned line;

	if (v->n == 0)
		return true;
	if (!tl_image_line(f->image, f, &file, &line))
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (tl_pattern_is_source(v->at[i], file))
			return true;
	return false;
}

/* The source last: it costs the most to know. */
bool tl_select_func(const struct tl_select *s, const struct tl_func *f, bool is_main)
{
	return wanted(s, f, is_main) && !excluded(s, f, is_main) && from_source(s, f);
}
