#include "probe/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/log.h"
#include "target/mem.h"
#include "target/procfs.h"
#include "target/remote.h"

enum {
	PAGE = 4096,
	AREA_LEAST = 64 << 10,
	/* Distance kept to the neighbours: a heap grows upwards, a stack downwards. */
	GUARD = 1 << 20,
	STACK_GUARD = 64 << 20,
	MAP_TRIES = 8,
};

static bool in_reach(tl_vaddr lo, size_t size, const struct tl_vrange *module)
{
	int64_t reach = tl_arch_native()->slot_reach - PAGE;

	return (int64_t)(module->hi.u - lo.u) < reach &&
	       (int64_t)(lo.u + size - module->lo.u) < reach;
}

/* The place nearest to the module; {0}: none. SKIP: how many good ones to pass over. */
static tl_vaddr find_gap(const struct tl_maps *maps, const struct tl_vrange *module, size_t size,
			 unsigned skip)
{
	uint64_t best = 0, best_distance = UINT64_MAX, below = 16 * PAGE;

	for (size_t i = 0; i < maps->n; below = maps->at[i].hi.u, i++) {
		const struct tl_mapping *m = &maps->at[i];
		uint64_t guard = strcmp(m->path, "[stack]") ? GUARD : STACK_GUARD, lo, distance;

		/* Another gap for each time that one was taken before we could map it. */
		guard += (uint64_t)skip * (size + GUARD);
		if (m->lo.u < below + size + guard)
			continue;
		lo = (m->lo.u - guard - size) & -(uint64_t)PAGE;
		distance = lo < module->lo.u ? module->lo.u - lo : lo - module->lo.u;
		if (distance < best_distance && in_reach((tl_vaddr){lo}, size, module)) {
			best = lo;
			best_distance = distance;
		}
	}
	return (tl_vaddr){best};
}

static int choose(const struct tl_scratch_near *near, size_t size, unsigned skip, tl_vaddr *out)
{
	struct tl_maps maps;
	int r = tl_maps_read(near->pid, &maps);

	if (r != TL_OK)
		return r;
	*out = find_gap(&maps, &near->module, size, skip);
	/* Small address spaces: closer to the neighbours is better than not at all. */
	tl_maps_fini(&maps);
	if (!out->u)
		return tl_fail(-ENOSPC, "no room for displaced instructions within 2 GiB of %#llx",
			       (unsigned long long)near->module.lo.u);
	return TL_OK;
}

static size_t add_area(struct tl_scratch *s, tl_vaddr lo, size_t size, bool padding)
{
	struct tl_area a = {.lo = lo, .size = size, .mapped = padding, .padding = padding,
			    .bytes = tl_malloc(size)};

	memset(a.bytes, 0, size);
	tl_vec_push(&s->areas, a);
	return s->areas.n - 1;
}

int tl_scratch_area(struct tl_scratch *s, const struct tl_scratch_near *near, size_t *out)
{
	size_t want = near->expect < AREA_LEAST ? AREA_LEAST : near->expect;
	uint64_t padding = near->padding.hi.u - near->padding.lo.u;
	tl_vaddr lo;
	int r;

	for (size_t i = 0; i < s->areas.n; i++) {
		const struct tl_area *a = &s->areas.at[i];

		if (a->size - a->used >= TL_SLOT_SIZE && in_reach(a->lo, a->size, &near->module)) {
			*out = i;
			return TL_OK;
		}
		if (a->padding && a->lo.u == near->padding.lo.u)
			padding = 0;
	}
	want = (want + PAGE - 1) & -(size_t)PAGE;
	if (s->may_map) {
		if ((r = choose(near, want, 0, &lo)) == TL_OK)
			*out = add_area(s, lo, want, false);
		return r;
	}
	if (padding < TL_SLOT_SIZE)
		return tl_fail(-ENOSPC, "no room for displaced instructions: the process is under "
					"seccomp and must not be made to map memory");
	*out = add_area(s, near->padding.lo, padding, true);
	return TL_OK;
}

tl_vaddr tl_scratch_take(struct tl_area *a, const void *code, size_t n)
{
	tl_vaddr at = {a->lo.u + a->used};

	memcpy(a->bytes + a->used, code, n);
	a->used += (n + 7) & ~(size_t)7;
	if (a->used > a->size)
		a->used = a->size;
	return at;
}

bool tl_scratch_is_mapped(const struct tl_scratch *s)
{
	for (size_t i = 0; i < s->areas.n; i++)
		if (!s->areas.at[i].mapped)
			return false;
	return true;
}

int tl_scratch_flush(struct tl_scratch *s, int mem_fd)
{
	for (size_t i = 0; i < s->areas.n; i++) {
		struct tl_area *a = &s->areas.at[i];
		int r;

		if (!a->mapped || a->written == a->used)
			continue;
		r = tl_mem_write(mem_fd, (tl_vaddr){a->lo.u + a->written}, a->bytes + a->written,
				 a->used - a->written);
		if (r != TL_OK)
			return r;
		a->written = a->used;
	}
	return TL_OK;
}

/* Read and execute only: policies against writable code do not mind it, and we write through
 * /proc/PID/mem. FIXED_NOREPLACE: what the program mapped there meanwhile stays. */
static int map_one(struct tl_area *a, pid_t tid, int mem_fd, tl_vaddr stub)
{
	const uint64_t args[6] = {a->lo.u, a->size, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0};
	int64_t result = 0;
	int r = tl_remote_syscall(tid, mem_fd, stub, SYS_mmap, args, &result);

	if (r != TL_OK)
		return r;
	if ((uint64_t)result != a->lo.u)
		return tl_fail(result < 0 ? (int)result : -ENOMEM,
			       "memory for displaced instructions could not be mapped in task %d: %s",
			       tid, strerror(result < 0 ? (int)-result : ENOMEM));
	a->mapped = true;
	return TL_OK;
}

int tl_scratch_map(struct tl_scratch *s, pid_t tid, int mem_fd, tl_vaddr stub)
{
	for (size_t i = 0; i < s->areas.n; i++) {
		int r = s->areas.at[i].mapped ? TL_OK :
						map_one(&s->areas.at[i], tid, mem_fd, stub);

		if (r != TL_OK)
			return r;
	}
	return tl_scratch_flush(s, mem_fd);
}

bool tl_scratch_holds(const struct tl_scratch *s, tl_vaddr at)
{
	for (size_t i = 0; i < s->areas.n; i++)
		if (at.u - s->areas.at[i].lo.u < s->areas.at[i].size)
			return true;
	return false;
}

int tl_scratch_unmap(struct tl_scratch *s, pid_t tid, int mem_fd, tl_vaddr stub)
{
	int r = TL_OK;

	for (size_t i = 0; i < s->areas.n && r == TL_OK; i++) {
		struct tl_area *a = &s->areas.at[i];
		const uint64_t args[6] = {a->lo.u, a->size};
		int64_t result;

		if (a->padding) {
			memset(a->bytes, 0, a->used);
			r = tl_mem_write(mem_fd, a->lo, a->bytes, a->used);
		} else if (a->mapped && tid) {
			r = tl_remote_syscall(tid, mem_fd, stub, SYS_munmap, args, &result);
			a->mapped = false;
		}
	}
	return r;
}

void tl_scratch_copy(const struct tl_scratch *from, struct tl_scratch *to)
{
	*to = (struct tl_scratch){.may_map = from->may_map};
	for (size_t i = 0; i < from->areas.n; i++) {
		struct tl_area a = from->areas.at[i];

		a.bytes = memcpy(tl_malloc(a.size), a.bytes, a.size);
		tl_vec_push(&to->areas, a);
	}
}

void tl_scratch_fini(struct tl_scratch *s)
{
	for (size_t i = 0; i < s->areas.n; i++)
		free(s->areas.at[i].bytes);
	tl_vec_fini(&s->areas);
}
