/* Names for the functions of an image, each one's own. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/demangle.h"
#include "sym/image_priv.h"
#include "sym/names.h"

/* More duplicates than this (Rust instances share names by the thousand) are not worth
 * reading debug information for: they get offsets. */
enum { FEW = 1000 };

struct naming {
	struct tl_image *img;
	struct tl_strmap taken; /* name -> function */
	uint32_t *next;		/* per function: another one of the same bare name, + 1 */
	bool lines;		/* debug information is at hand */
};

static const char *keep(struct tl_arena *a, char *s, const char *same)
{
	const char *kept = same && !strcmp(s, same) ? same : tl_arena_strdup(a, s);

	free(s);
	return kept;
}

/* Most names of most programs are plain words: no copy then. */
static bool is_plain(const char *raw)
{
	for (const char *p = raw; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return false;
	return !tl_name_is_mangled(raw);
}

static const char *bare(struct tl_arena *a, const char *raw)
{
	return is_plain(raw) ? raw : keep(a, tl_demangle(raw, false), raw);
}

static void demangle_aliases(struct tl_image *img, struct tl_func *f)
{
	const char **out;
	size_t n = 0, k = 0;

	while (f->raw_aliases[n])
		n++;
	out = tl_arena_alloc(&img->arena, (n + 1) * sizeof *out);
	for (size_t i = 0; i < n; i++) {
		const char *s = bare(&img->arena, f->raw_aliases[i]);
		bool known = !strcmp(s, f->bare);

		for (size_t j = 0; j < k && !known; j++)
			known = !strcmp(s, out[j]);
		if (!known)
			out[k++] = s;
	}
	out[k] = NULL;
	f->aliases = k ? out : NULL;
}

static void demangle_func(struct tl_image *img, struct tl_func *f)
{
	f->bare = bare(&img->arena, f->raw);
	f->full = is_plain(f->raw) ? f->raw : keep(&img->arena, tl_demangle(f->raw, true), f->bare);
	f->name = f->bare;
	if (f->raw_aliases)
		demangle_aliases(img, f);
}

/* Overloads are told apart by their parameters, all of them alike. */
static void name_overloads(struct naming *n)
{
	struct tl_image *img = n->img;
	struct tl_strmap heads = {0};

	for (size_t i = 0; i < img->funcs.n; i++) {
		struct tl_func *f = &img->funcs.at[i], *head = tl_strmap_get(&heads, f->bare);
		size_t h;

		if (!head) {
			tl_strmap_put(&heads, f->bare, f);
			continue;
		}
		h = (size_t)(head - img->funcs.at);
		n->next[i] = n->next[h];
		n->next[h] = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < img->funcs.n; i++) {
		struct tl_func *f = &img->funcs.at[i];
		bool differ = false;

		if (!n->next[i] || tl_strmap_get(&heads, f->bare) != f)
			continue;
		for (uint32_t k = n->next[i]; k; k = n->next[k - 1])
			differ |= strcmp(img->funcs.at[k - 1].full, f->full) != 0;
		if (!differ)
			continue;
		f->name = f->full;
		for (uint32_t k = n->next[i]; k; k = n->next[k - 1])
			img->funcs.at[k - 1].name = img->funcs.at[k - 1].full;
	}
	tl_strmap_fini(&heads);
}

static bool take(struct naming *n, struct tl_func *f, const char *name)
{
	if (tl_strmap_get(&n->taken, name))
		return false;
	tl_strmap_put(&n->taken, name, f);
	f->name = name;
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *with_file(struct tl_arena *a, const char *name, const char *file, unsigned line)
{
	char *s = line ? tl_asprintf("%s@%s:%u", name, base_name(file), line)
		       : tl_asprintf("%s@%s", name, base_name(file));

	tl_name_clean(s);
	return keep(a, s, NULL);
}

/* By what is known the cheapest: its version, its file and line, its file; its address
 * tells any function from all others. */
static void distinguish(struct naming *n, struct tl_func *f)
{
	struct tl_image *img = n->img;
	struct tl_arena *a = &img->arena;
	size_t i = (size_t)(f - img->funcs.at);
	const char *name = f->name, *file = img->files.at[img->func_file[i]];
	unsigned line = 0;

	if (img->func_version[i] &&
	    take(n, f, tl_arena_printf(a, "%s@%s", name, img->func_version[i])))
		return;
	if (n->lines && tl_dwarf_line(img, f, &file, &line) &&
	    take(n, f, with_file(a, name, file, line)))
		return;
	file = img->files.at[img->func_file[i]];
	if (file && take(n, f, with_file(a, name, file, 0)))
		return;
	for (unsigned k = 0;; k++) {
		const char *s =
		    tl_arena_printf(a, "%s@%s+0x%llx%.*s", name, img->short_name,
				    (unsigned long long)f->entry.u, (int)k, "''''''''''''''''");

		if (take(n, f, s) || k > 16)
			return;
	}
}

/* Whoever can be called by its name from elsewhere keeps it; then the lower address. */
static void settle(struct naming *n)
{
	struct tl_image *img = n->img;
	TL_VEC(uint32_t) late = {0};

	for (int local = 0; local < 2; local++)
		for (size_t i = 0; i < img->funcs.n; i++) {
			bool is_local = img->func_bind[i] == TL_BIND_LOCAL || img->func_version[i];

			if (is_local == local && !take(n, &img->funcs.at[i], img->funcs.at[i].name))
				tl_vec_push(&late, (uint32_t)i);
		}
	n->lines = late.n && late.n <= FEW && tl_dwarf_is_cheap(img);
	for (size_t i = 0; i < late.n; i++)
		distinguish(n, &img->funcs.at[late.at[i]]);
	tl_vec_fini(&late);
}

void tl_image_name_funcs(struct tl_image *img)
{
	struct naming n = {.img = img, .next = tl_calloc(img->funcs.n, sizeof *n.next)};

	for (size_t i = 0; i < img->funcs.n; i++)
		demangle_func(img, &img->funcs.at[i]);
	name_overloads(&n);
	settle(&n);
	free(n.next);
	tl_strmap_fini(&n.taken);
}
