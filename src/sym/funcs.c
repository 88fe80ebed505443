/* Asking an image for its functions: loads what is needed, once, then only looks up. */
#include <string.h>

#include "base/err.h"
#include "sym/image_priv.h"
#include "sym/names.h"

bool tl_image_is_code(const struct tl_image *img, uint64_t at)
{
	const struct tl_segment *s = tl_image_segment_at(img, at);

	/* What lies beyond the file's bytes is zeros: no code. */
	return s && s->executable && at - s->lo.u < s->file_size;
}

const struct tl_text_section *tl_image_section_at(const struct tl_image *img, uint64_t at)
{
	size_t lo = 0, hi = img->text.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->text.at[mid].hi <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < img->text.n && img->text.at[lo].lo <= at ? &img->text.at[lo] : NULL;
}

void tl_image_skip(struct tl_image *img, const char *name, uint64_t at, const char *why)
{
	tl_vec_push(&img->skipped, (struct tl_func_skipped){name, {at}, why});
}

static void load(struct tl_image *img)
{
	pthread_mutex_lock(&img->lock);
	if (!img->loaded) {
		tl_image_load_symbols(img);
		img->loaded = true;
	}
	pthread_mutex_unlock(&img->lock);
}

size_t tl_image_funcs(struct tl_image *img, const struct tl_func **out)
{
	load(img);
	*out = img->funcs.at;
	return img->funcs.n;
}

size_t tl_image_skipped(struct tl_image *img, const struct tl_func_skipped **out)
{
	load(img);
	*out = img->skipped.at;
	return img->skipped.n;
}

static const struct tl_func *part_at(const struct tl_image *img, uint64_t at)
{
	size_t lo = 0, hi = img->parts.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->parts.at[mid].lo <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || at >= img->parts.at[lo - 1].hi)
		return NULL;
	return &img->funcs.at[img->parts.at[lo - 1].func];
}

const struct tl_func *tl_image_func_at(struct tl_image *img, tl_faddr addr)
{
	const struct tl_func *f;
	size_t lo = 0, hi;

	load(img);
	f = part_at(img, addr.u);
	if (f)
		return f;
	hi = img->funcs.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->funcs.at[mid].entry.u <= addr.u)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The nearest that reaches so far: behind a nested function its outer one goes on. */
	while (lo-- > 0 && img->max_end[lo] > addr.u) {
		f = &img->funcs.at[lo];
		if (addr.u - f->entry.u < f->size)
			return f;
	}
	return NULL;
}

/* Marks a name that several functions have. */
static const struct tl_func ambiguous;

static void index_name(struct tl_image *img, const char *name, const struct tl_func *f)
{
	const struct tl_func *was = tl_strmap_get(&img->by_name, name);

	if (was != f)
		tl_strmap_put(&img->by_name, name, (void *)(was ? &ambiguous : f));
}

static void index_names(struct tl_image *img)
{
	for (size_t i = 0; i < img->funcs.n; i++) {
		const struct tl_func *f = &img->funcs.at[i];

		index_name(img, f->bare, f);
		index_name(img, f->full, f);
		index_name(img, f->raw, f);
		for (const char *const *a = f->aliases; a && *a; a++)
			index_name(img, *a, f);
		for (const char *const *a = f->raw_aliases; a && *a; a++)
			index_name(img, *a, f);
	}
	/* What a profile calls it is unique, though others may share it as a bare name. */
	for (size_t i = 0; i < img->funcs.n; i++)
		tl_strmap_put(&img->by_name, img->funcs.at[i].name, &img->funcs.at[i]);
}

const struct tl_func *tl_image_func_named(struct tl_image *img, const char *name)
{
	const struct tl_func *f;

	load(img);
	pthread_mutex_lock(&img->lock);
	if (!img->by_name_done) {
		index_names(img);
		img->by_name_done = true;
	}
	f = tl_strmap_get(&img->by_name, name);
	pthread_mutex_unlock(&img->lock);
	return f == &ambiguous ? NULL : f;
}

bool tl_image_line(struct tl_image *img, const struct tl_func *f, const char **file, unsigned *line)
{
	bool found;

	load(img);
	pthread_mutex_lock(&img->lock);
	found = tl_dwarf_line(img, f, file, line);
	pthread_mutex_unlock(&img->lock);
	return found;
}
