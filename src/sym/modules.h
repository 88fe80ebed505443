/* sym/modules.h - which files a process has mapped, and where.
 *
 * Built from the lines of /proc/PID/maps; files are read through the process's own
 * eyes (/proc/PID/map_files, /proc/PID/root) when the path does not lead to them. */
#ifndef TL_SYM_MODULES_H
#define TL_SYM_MODULES_H

#include "sym/image.h"
#include "target/procfs.h"

struct tl_module {
	struct tl_image *image;
	uint64_t bias; /* tracee address - file address */
	tl_vaddr lo, hi; /* from its first to its last mapping */
	dev_t dev;
	ino_t inode;
	bool is_main; /* the process's executable */
};

struct tl_modules {
	struct tl_module **at; /* sorted by lo; owned. A module keeps its address as long as it stays */
	size_t n;
};

struct tl_image_cache; /* by dev, inode, mtime: one per session */
struct tl_image_cache *tl_image_cache_new(void);
void tl_image_cache_free(struct tl_image_cache *c);

/* Brings MODS up to date with what PID maps now. Modules that went are handed to
 * GONE(ctx, module) just before they are freed, new ones to CAME(ctx, module). A file
 * that cannot be read is warned about once and left out. */
int tl_modules_update(struct tl_modules *mods, struct tl_image_cache *cache, pid_t pid,
		      void (*gone)(void *, struct tl_module *),
		      void (*came)(void *, struct tl_module *), void *ctx);
struct tl_module *tl_modules_at(const struct tl_modules *mods, tl_vaddr addr);
void tl_modules_fini(struct tl_modules *mods);

static inline tl_vaddr tl_module_vaddr(const struct tl_module *m, tl_faddr a)
{
	return (tl_vaddr){a.u + m->bias};
}
static inline tl_faddr tl_module_faddr(const struct tl_module *m, tl_vaddr a)
{
	return (tl_faddr){a.u - m->bias};
}

#endif
