#include "unwind/unwind.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"

/* Exported by libunwind, and used by its own ptrace accessors, but not declared. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
			int need_unwind_info, void *arg);

/* What .eh_frame_hdr says, read once for each module. */
struct table {
	bool usable;
	uint64_t bias;
	uint64_t entries, count;
};

struct tl_unwinder {
	struct tl_unwind_source src;
	const struct tl_arch *arch;
	unw_addr_space_t as;
	struct tl_map tables; /* by module key */
	/* Of the tl_unwind() that runs. */
	const struct tl_stack_copy *copy;
	bool missing; /* code without tables was met */
};

static size_t width(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return 8;
	case 0x03: /* udata4 */
	case 0x0b: /* sdata4 */
		return 4;
	case 0x02: /* udata2 */
	case 0x0a: /* sdata2 */
		return 2;
	}
	return 0;
}

/* The header is 4 bytes (version and three encodings), the address of .eh_frame, the number of
 * entries, and these, sorted (Linux Standard Base, "Exception Frame Header"). Every linker
 * writes the count as udata4 and entries as datarel sdata4; libunwind wants the latter. */
static void read_header(struct tl_unwinder *u, const struct tl_unwind_module *m, struct table *t)
{
	uint64_t at = m->eh_frame_hdr.u + m->bias;
	uint8_t raw[16];
	uint32_t count;
	size_t skip;

	*t = (struct table){.bias = m->bias};
	if (!m->eh_frame_hdr.u || u->src.read_module(u->src.ctx, (tl_vaddr){at}, raw, 16) < 12)
		return;
	skip = 4 + width(raw[1]);
	if (raw[0] != 1 || skip == 4 || raw[2] != 0x03 || raw[3] != 0x3b)
		return;
	memcpy(&count, raw + skip, 4);
	t->count = count;
	t->entries = at + skip + 4;
	/* A cut file must not lead beyond its table. */
	t->usable = count && skip + 4 + (uint64_t)count * 8 <= m->eh_frame_hdr_size;
}

static const struct table *table_of(struct tl_unwinder *u, const struct tl_unwind_module *m)
{
	struct table *t = tl_map_get(&u->tables, (uintptr_t)m->key);

	if (t && t->bias == m->bias)
		return t;
	if (!t) {
		t = tl_malloc(sizeof *t);
		tl_map_put(&u->tables, (uintptr_t)m->key, t);
	}
	read_header(u, m, t);
	return t;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
			  void *arg)
{
	struct tl_unwinder *u = arg;
	struct tl_unwind_module m = {0};
	unw_dyn_info_t di = {0};
	const struct table *t;
	int r = -UNW_ENOINFO;

	if (u->src.module_at(u->src.ctx, (tl_vaddr){ip}, &m)) {
		t = table_of(u, &m);
		if (t->usable) {
			di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
			di.start_ip = m.lo.u;
			di.end_ip = m.hi.u;
			di.u.rti.segbase = m.eh_frame_hdr.u + m.bias;
			di.u.rti.table_data = t->entries;
			di.u.rti.table_len = t->count * 8 / sizeof(unw_word_t);
			r = search_unwind_table(as, ip, &di, pi, need, arg);
		}
	}
	u->missing |= r < 0;
	return r;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	/* libunwind takes back what it made itself. */
	(void)as;
	(void)pi;
	(void)arg;
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *list, void *arg)
{
	(void)as;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t at, unw_word_t *value, int write, void *arg)
{
	struct tl_unwinder *u = arg;
	uint64_t from = at - u->copy->base.u;
	unw_word_t word = 0;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (u->copy->n >= sizeof word && from <= u->copy->n - sizeof word) {
		memcpy(value, u->copy->bytes + from, sizeof word);
		return 0;
	}
	/* libunwind reads whole aligned words: the last one may reach over a module's end. */
	if (!u->src.read_module(u->src.ctx, (tl_vaddr){at}, &word, sizeof word))
		return -UNW_EINVAL;
	*value = word;
	return 0;
}

/* libunwind numbers registers as DWARF does, on every CPU that we could meet. */
static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	struct tl_unwinder *u = arg;

	(void)as;
	if (write || reg < 0 ||
	    !u->arch->dwarf_register(&u->copy->regs, (unsigned)reg, (uint64_t *)value))
		return -UNW_EBADREG;
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)as;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as;
	(void)c;
	(void)arg;
	return -UNW_EINVAL;
}

struct tl_unwinder *tl_unwinder_new(const struct tl_unwind_source *src)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dyn_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = no_fpreg,
		.resume = no_resume,
	};
	struct tl_unwinder *u = tl_calloc(1, sizeof *u);

	u->src = *src;
	u->arch = tl_arch_native();
	u->as = unw_create_addr_space(&accessors, 0);
	/* Without a cache each frame's tables are read again: 5 times slower. */
	if (u->as)
		unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
	return u;
}

static bool frame_at(unw_cursor_t *c, struct tl_unwound *out)
{
	unw_word_t pc, sp;

	if (unw_get_reg(c, UNW_REG_IP, &pc) || unw_get_reg(c, UNW_REG_SP, &sp))
		return false;
	*out = (struct tl_unwound){.pc = {pc}, .sp = {sp}};
	return true;
}

size_t tl_unwind(struct tl_unwinder *u, const struct tl_stack_copy *copy, struct tl_unwound *out,
		 size_t max, bool *complete)
{
	unw_cursor_t c;
	size_t n = 0;
	int more = 1;

	*complete = false;
	u->copy = copy;
	u->missing = false;
	if (!u->as || unw_init_remote(&c, u->as, u))
		return 0;
	for (; n < max && frame_at(&c, &out[n]); n++) {
		struct tl_unwound *f = &out[n], *inner = n ? f - 1 : NULL;

		f->is_trampoline = unw_is_signal_frame(&c) > 0;
		f->in_signal = !inner || f->is_trampoline || inner->is_trampoline;
		if (inner)
			inner->cfa = f->sp;
		/* Where tables are missing libunwind follows rbp instead, which in optimised
		 * code is any value. The kernel's signal frame it knows by itself. */
		u->missing = false;
		more = unw_step(&c);
		if (more <= 0 || (u->missing && !f->is_trampoline)) {
			*complete = more == 0 && !u->missing;
			return n + 1;
		}
	}
	return n;
}

static void forget_tables(struct tl_unwinder *u)
{
	size_t pos = 0;
	uint64_t key;
	void *t;

	while (tl_map_next(&u->tables, &pos, &key, &t))
		free(t);
	tl_map_fini(&u->tables);
}

void tl_unwinder_flush(struct tl_unwinder *u)
{
	forget_tables(u);
	if (u->as)
		unw_flush_cache(u->as, 0, 0);
}

void tl_unwinder_free(struct tl_unwinder *u)
{
	if (!u)
		return;
	forget_tables(u);
	if (u->as)
		unw_destroy_addr_space(u->as);
	free(u);
}
