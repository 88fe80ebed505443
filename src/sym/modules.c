#include "sym/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "sym/image_priv.h"

struct tl_image_cache {
	TL_VEC(struct tl_image *) images;
	TL_VEC(struct bad {
		dev_t dev;
		ino_t inode;
	})
	bad; /* warned about */
};

typedef TL_VEC(struct tl_module *) module_vec;

struct tl_image_cache *tl_image_cache_new(void)
{
	return tl_calloc(1, sizeof(struct tl_image_cache));
}

void tl_image_cache_free(struct tl_image_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->images.n; i++)
		tl_image_unref(c->images.at[i]);
	tl_vec_fini(&c->images);
	tl_vec_fini(&c->bad);
	free(c);
}

/* --- finding the file ------------------------------------------------------------------- */

static struct tl_image *cached(const struct tl_image_cache *c, const struct stat *st)
{
	for (size_t i = 0; i < c->images.n; i++) {
		const struct stat *s = &c->images.at[i]->st;

		if (s->st_dev == st->st_dev && s->st_ino == st->st_ino &&
		    s->st_size == st->st_size && s->st_mtim.tv_sec == st->st_mtim.tv_sec &&
		    s->st_mtim.tv_nsec == st->st_mtim.tv_nsec)
			return c->images.at[i];
	}
	return NULL;
}

/* PATH as it can be opened from here, and whether it leads to the file that is mapped. */
static bool leads_to(const char *path, const struct tl_mapping *m, struct stat *st, bool *same)
{
	if (stat(path, st) != 0)
		return false;
	*same = st->st_dev == m->dev && st->st_ino == m->inode;
	return true;
}

/* F12.  The path through the process's own root first: it needs no privilege and shows the
 * file's neighbours (debug links); map_files needs CAP_CHECKPOINT_RESTORE.  Where btrfs or
 * an overlay reports another device in maps than to stat, the path is taken at its word,
 * unless the file is deleted. */
static char *find_file(pid_t pid, const struct tl_mapping *m, struct stat *st)
{
	char *through = tl_asprintf("/proc/%d/map_files/%llx-%llx", pid,
				    (unsigned long long)m->lo.u, (unsigned long long)m->hi.u);
	char *path = tl_asprintf("/proc/%d/root%s", pid, m->path);
	struct stat by_path;
	bool same = false, there = !m->deleted && leads_to(path, m, &by_path, &same);
	bool mapped = !same && stat(through, st) == 0;

	if (mapped && there && st->st_dev == by_path.st_dev && st->st_ino == by_path.st_ino)
		mapped = false;
	if (!mapped && there)
		*st = by_path;
	if (!mapped && !there) {
		free(through);
		free(path);
		return NULL;
	}
	free(mapped ? path : through);
	return mapped ? through : path;
}

static void warn_once(struct tl_image_cache *c, const struct tl_mapping *m, const char *why)
{
	for (size_t i = 0; i < c->bad.n; i++)
		if (c->bad.at[i].dev == m->dev && c->bad.at[i].inode == m->inode)
			return;
	tl_vec_push(&c->bad, (struct bad){m->dev, m->inode});
	tl_warn("%s; its functions are not seen", why);
}

/* A path that this process sees as the other does needs no detour in what people read, and
 * outlives the process. */
static const char *plain_path(const struct tl_mapping *m, const char *found, const struct stat *st)
{
	struct stat own;

	if (stat(m->path, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
		return m->path;
	return found;
}

static struct tl_image *image_of(struct tl_image_cache *c, pid_t pid, const struct tl_mapping *m)
{
	struct tl_image *img = NULL;
	struct stat st;
	char *path = find_file(pid, m, &st);

	if (!path) {
		char *why = tl_asprintf("%s: %s", m->path,
					m->deleted ? "deleted, and /proc/PID/map_files needs root"
						   : strerror(errno));

		warn_once(c, m, why);
		free(why);
		return NULL;
	}
	img = cached(c, &st);
	if (img) {
		tl_image_ref(img);
	} else if (tl_image_open(plain_path(m, path, &st), m->path, &img) == TL_OK) {
		tl_vec_push(&c->images, tl_image_ref(img));
	} else {
		warn_once(c, m, tl_error_text());
	}
	free(path);
	return img;
}

/* --- one load of a file: consecutive mappings with rising offsets --------------------------- */

struct group {
	const struct tl_mapping *first, *exec;
	tl_vaddr hi;
};

static bool is_file(const struct tl_mapping *m)
{
	/* Devices, shared memory and anonymous files without a path are no modules. */
	return m->inode && m->path[0] == '/';
}

/* The next group at or behind *I with code in it. */
static bool next_group(const struct tl_maps *maps, size_t *i, struct group *g)
{
	while (*i < maps->n) {
		const struct tl_mapping *m = &maps->at[(*i)++];
		uint64_t offset;

		if (!is_file(m))
			continue;
		*g = (struct group){m, m->executable ? m : NULL, m->hi};
		offset = m->offset;
		for (; *i < maps->n; (*i)++) {
			const struct tl_mapping *k = &maps->at[*i];

			/* Between the segments lie anonymous mappings: bss, guards, scratch. */
			if (!is_file(k))
				continue;
			if (k->dev != m->dev || k->inode != m->inode || k->offset < offset)
				break;
			offset = k->offset;
			g->hi = k->hi;
			if (k->executable && !g->exec)
				g->exec = k;
		}
		if (g->exec)
			return true;
	}
	return false;
}

/* Where the file's addresses went: by the executable mapping, whose segment is sure. */
static bool find_bias(const struct tl_image *img, const struct tl_mapping *m, uint64_t *bias)
{
	const struct tl_segment *s;
	size_t n = tl_image_segments(img, &s);

	for (int exec = 1; exec >= 0; exec--)
		for (size_t i = 0; i < n; i++) {
			uint64_t lo = s[i].file_offset & ~(uint64_t)4095;

			if (s[i].executable != exec || m->offset < lo ||
			    m->offset >= s[i].file_offset + s[i].file_size)
				continue;
			*bias = m->lo.u + (s[i].file_offset - m->offset) - s[i].lo.u;
			return true;
		}
	return false;
}

static struct tl_module *find_old(const struct tl_modules *mods, const struct group *g)
{
	for (size_t lo = 0, hi = mods->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;
		struct tl_module *m = mods->at[mid];

		if (m->lo.u == g->first->lo.u)
			return m->dev == g->first->dev && m->inode == g->first->inode ? m : NULL;
		if (m->lo.u < g->first->lo.u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static struct tl_module *new_module(struct tl_image_cache *c, pid_t pid, const struct group *g,
				    const struct stat *exe)
{
	struct tl_image *img = image_of(c, pid, g->exec);
	struct tl_module *m;
	uint64_t bias;

	if (!img)
		return NULL;
	if (!find_bias(img, g->exec, &bias)) {
		warn_once(c, g->exec, tl_image_path(img));
		tl_image_unref(img);
		return NULL;
	}
	m = tl_calloc(1, sizeof *m);
	*m = (struct tl_module){
	    .image = img,
	    .bias = bias,
	    .lo = g->first->lo,
	    .hi = g->hi,
	    .dev = g->first->dev,
	    .inode = g->first->inode,
	    .is_main =
		exe->st_ino && ((exe->st_dev == g->first->dev && exe->st_ino == g->first->inode) ||
				(exe->st_dev == img->st.st_dev && exe->st_ino == img->st.st_ino)),
	};
	return m;
}

static void free_module(struct tl_module *m)
{
	tl_image_unref(m->image);
	free(m);
}

static bool contains(const module_vec *v, const struct tl_module *m)
{
	for (size_t lo = 0, hi = v->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->at[mid] == m)
			return true;
		if (v->at[mid]->lo.u < m->lo.u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

int tl_modules_update(struct tl_modules *mods, struct tl_image_cache *cache, pid_t pid,
		      void (*gone)(void *, struct tl_module *),
		      void (*came)(void *, struct tl_module *), void *ctx)
{
	module_vec now = {0}, fresh = {0};
	struct stat exe = {0};
	struct tl_maps maps;
	struct group g;
	char path[64];
	size_t i = 0;
	int r = tl_maps_read(pid, &maps);

	if (r != TL_OK)
		return r;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	if (stat(path, &exe) != 0)
		exe.st_ino = 0;
	while (next_group(&maps, &i, &g)) {
		struct tl_module *m = find_old(mods, &g);

		if (m)
			m->hi = g.hi;
		else if ((m = new_module(cache, pid, &g, &exe)))
			tl_vec_push(&fresh, m);
		if (m)
			tl_vec_push(&now, m);
	}
	tl_maps_fini(&maps);
	for (size_t k = 0; k < mods->n; k++) {
		if (contains(&now, mods->at[k]))
			continue;
		if (gone)
			gone(ctx, mods->at[k]);
		free_module(mods->at[k]);
	}
	free(mods->at);
	*mods = (struct tl_modules){now.at, now.n};
	for (size_t k = 0; came && k < fresh.n; k++)
		came(ctx, fresh.at[k]);
	tl_vec_fini(&fresh);
	return TL_OK;
}

struct tl_module *tl_modules_at(const struct tl_modules *mods, tl_vaddr addr)
{
	size_t lo = 0, hi = mods->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (mods->at[mid]->lo.u <= addr.u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && addr.u < mods->at[lo - 1]->hi.u ? mods->at[lo - 1] : NULL;
}

void tl_modules_fini(struct tl_modules *mods)
{
	for (size_t i = 0; i < mods->n; i++)
		free_module(mods->at[i]);
	free(mods->at);
	*mods = (struct tl_modules){0};
}
