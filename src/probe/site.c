#include "probe/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/mem.h"

/* Room for the slot of the instruction at AT, and the way past it. */
static int place(struct tl_sites *s, const uint8_t *bytes, size_t n, tl_vaddr at,
		 const struct tl_scratch_near *near, struct tl_site *site)
{
	const struct tl_arch *arch = tl_arch_native();
	struct tl_area *area;
	size_t i;
	int r = arch->make_step(bytes, n, at, (tl_vaddr){0}, &site->step);

	if (r < 0 || site->step.kind == TL_STEP_FIXED || site->step.kind == TL_STEP_BRANCH)
		return r;
	if ((r = tl_scratch_area(&s->scratch, near, &i)) < 0)
		return r;
	area = &s->scratch.areas.at[i];
	if (site->step.kind == TL_STEP_RETURN) {
		if (!area->plain_return.u)
			area->plain_return = tl_scratch_take(area, arch->plain_return,
							     arch->plain_return_length);
		site->slot = area->plain_return;
		return TL_OK;
	}
	r = arch->make_step(bytes, n, at, (tl_vaddr){area->lo.u + area->used}, &site->step);
	if (r == TL_OK)
		site->slot = tl_scratch_take(area, site->step.code, site->step.length);
	return r;
}

int tl_site_get(struct tl_sites *s, tl_vaddr at, const struct tl_site_code *code,
		struct tl_site **out)
{
	uint8_t bytes[TL_INSN_MAX], now[TL_INSN_MAX];
	struct tl_site *site = tl_site_at(s, at);
	struct tl_insn insn;
	size_t n;
	int r;

	*out = site;
	if (site)
		return TL_OK;
	n = code->read(code->ctx, at, bytes, sizeof bytes);
	if (!n || tl_arch_native()->decode(bytes, n, at, &insn) < 0)
		return tl_fail(-EILSEQ, "no known instruction is there");
	if (tl_mem_read(s->mem_fd, at, now, insn.length) != insn.length)
		return tl_fail(-EFAULT, "its code cannot be read");
	for (unsigned i = 0; i < insn.length; i++) {
		/* A site of ours in the middle of this instruction cannot be. */
		if (now[i] != bytes[i])
			return tl_fail(-EBUSY, "the code in memory is not that of the file: patched "
					       "by the program or another tracer");
	}
	site = tl_calloc(1, sizeof *site);
	site->at = at;
	site->original = bytes[0];
	if ((r = place(s, bytes, n, at, code->near, site)) < 0) {
		free(site);
		return r;
	}
	tl_map_put(&s->map, at.u, site);
	*out = site;
	return TL_OK;
}

void tl_site_want(struct tl_sites *s, struct tl_site *site, bool wanted)
{
	if (site->wanted == wanted)
		return;
	site->wanted = wanted;
	tl_vec_push(&s->changed, site);
}

static int write_site(struct tl_sites *s, struct tl_site *site)
{
	const struct tl_arch *arch = tl_arch_native();
	int r = tl_mem_write(s->mem_fd, site->at, site->wanted ? arch->trap : &site->original, 1);

	if (r == TL_OK)
		site->armed = site->wanted;
	else if (r < 0)
		site->wanted = site->armed;
	return r;
}

int tl_sites_apply(struct tl_sites *s)
{
	int first = tl_scratch_flush(&s->scratch, s->mem_fd), r;

	if (first != TL_OK) {
		s->changed.n = 0;
		return first;
	}
	if (s->changed.n)
		++*s->changes;
	for (size_t i = 0; i < s->changed.n; i++) {
		struct tl_site *site = s->changed.at[i];

		if (site->wanted != site->armed && (r = write_site(s, site)) != TL_OK &&
		    first == TL_OK)
			first = r;
	}
	s->changed.n = 0;
	return first;
}

tl_vaddr tl_site_past(const struct tl_sites *s, const struct tl_site *site, const tl_regs *regs)
{
	if (site->step.kind == TL_STEP_FIXED || site->step.kind == TL_STEP_BRANCH)
		return tl_arch_native()->step_target(&site->step, regs);
	for (size_t i = 0; i < s->scratch.areas.n; i++) {
		const struct tl_area *a = &s->scratch.areas.at[i];

		if (site->slot.u - a->lo.u < a->size)
			return a->mapped && a->written > site->slot.u - a->lo.u ? site->slot :
										  (tl_vaddr){0};
	}
	return (tl_vaddr){0};
}

int tl_sites_rewrite(struct tl_sites *s)
{
	size_t pos = 0;
	uint64_t key;
	void *v;
	int r = TL_OK;

	++*s->changes;
	while (r == TL_OK && tl_map_next(&s->map, &pos, &key, &v))
		r = write_site(s, v);
	return r;
}

void tl_sites_drop(struct tl_sites *s, struct tl_vrange range)
{
	TL_VEC(uint64_t) gone = {0};
	size_t pos = 0, kept = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->map, &pos, &key, &v))
		if (key - range.lo.u < range.hi.u - range.lo.u)
			tl_vec_push(&gone, key);
	for (size_t i = 0; i < s->changed.n; i++)
		if (s->changed.at[i]->at.u - range.lo.u >= range.hi.u - range.lo.u)
			s->changed.at[kept++] = s->changed.at[i];
	s->changed.n = kept;
	for (size_t i = 0; i < gone.n; i++)
		free(tl_map_remove(&s->map, gone.at[i]));
	tl_vec_fini(&gone);
}

void tl_sites_copy(const struct tl_sites *from, struct tl_sites *to,
		   void *(*entry)(void *ctx, void *), void *ctx)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	tl_scratch_copy(&from->scratch, &to->scratch);
	while (tl_map_next(&from->map, &pos, &key, &v)) {
		struct tl_site *site = tl_malloc(sizeof *site);

		*site = *(struct tl_site *)v;
		site->entry = site->entry ? entry(ctx, site->entry) : NULL;
		tl_map_put(&to->map, key, site);
	}
}

void tl_sites_fini(struct tl_sites *s)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->map, &pos, &key, &v))
		free(v);
	tl_map_fini(&s->map);
	tl_scratch_fini(&s->scratch);
	tl_vec_fini(&s->changed);
}
