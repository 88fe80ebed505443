#include "engine/exact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "target/mem.h"
#include "target/ptrace.h"

enum { PAGE = 4096, ROOM_A_FUNCTION = 32 };

/* Original code: of the file, since memory has our breakpoints. */
static size_t read_code(void *ctx, tl_vaddr at, uint8_t *buf, size_t n)
{
	struct tl_exact_space *es = ctx;
	const struct tl_module *m = tl_modules_at(&es->modules, at);

	return m ? tl_image_read(m->image, tl_module_faddr(m, at), buf, n) : 0;
}

/* The zero bytes between the end of a text segment's file content and its last page's end:
 * executable, and nobody's. */
static struct tl_vrange padding_of(const struct tl_module *m)
{
	const struct tl_segment *seg;
	size_t n = tl_image_segments(m->image, &seg);
	struct tl_vrange best = {{0}, {0}};

	for (size_t i = 0; i < n; i++) {
		uint64_t lo = (seg[i].lo.u + seg[i].file_size + m->bias + 15) & ~15ull;
		uint64_t hi = (lo + PAGE - 1) & -(uint64_t)PAGE;

		if (seg[i].executable && !seg[i].writable && hi - lo > best.hi.u - best.lo.u)
			best = (struct tl_vrange){{lo}, {hi}};
	}
	return best;
}

/* The stub sits at the very end of some padding, slots grow from its beginning. */
static void find_stub(struct tl_exact_space *es, const struct tl_module *m)
{
	struct tl_vrange pad = padding_of(m);

	if (!es->stub.u && pad.hi.u - pad.lo.u >= TL_STUB_SIZE)
		es->stub.u = pad.hi.u - TL_STUB_SIZE;
}

static struct tl_scratch_near near_of(const struct tl_exact_space *es, const struct tl_module *m)
{
	struct tl_vrange pad = padding_of(m);
	const struct tl_func *funcs;

	if (es->stub.u >= pad.lo.u && es->stub.u < pad.hi.u)
		pad.hi = es->stub;
	return (struct tl_scratch_near){
		.pid = es->space->any,
		.module = {m->lo, m->hi},
		.padding = pad,
		.expect = tl_image_funcs(m->image, &funcs) * ROOM_A_FUNCTION,
	};
}

static int get_site(struct tl_exact_space *es, const struct tl_module *m, tl_vaddr at,
		    struct tl_site **out)
{
	struct tl_scratch_near near;
	struct tl_site_code code = {es, read_code, &near};

	*out = tl_site_at(&es->sites, at);
	if (*out)
		return TL_OK;
	near = near_of(es, m);
	return tl_site_get(&es->sites, at, &code, out);
}

static struct tl_function *function_of(struct tl_exact *e, const struct tl_func *func,
				       const struct tl_module *m)
{
	struct tl_function *f = tl_map_get(&e->functions, (uintptr_t)func);

	if (f)
		return f;
	f = tl_calloc(1, sizeof *f);
	f->func = func;
	f->image = tl_image_ref(m->image);
	f->is_main = m->is_main;
	tl_map_put(&e->functions, (uintptr_t)func, f);
	return f;
}

/* Said once a function, whatever number of processes map it. */
static void refuse(struct tl_exact *e, const struct tl_func *func, const char *why)
{
	if (tl_map_get(&e->refused, (uintptr_t)func))
		return;
	tl_map_put(&e->refused, (uintptr_t)func, tl_strdup(why));
	tl_note("%s cannot be probed: %s", func->name, why);
}

static void add_probe(struct tl_exact *e, struct tl_exact_space *es, struct tl_module *m,
		      const struct tl_func *func, unsigned roles)
{
	struct tl_site *site;
	struct tl_probe *p;

	if (get_site(es, m, tl_module_vaddr(m, func->entry), &site) < 0) {
		refuse(e, func, tl_error_text());
		return;
	}
	if (site->entry) {
		((struct tl_probe *)site->entry)->roles |= roles;
		return;
	}
	p = tl_calloc(1, sizeof *p);
	p->function = function_of(e, func, m);
	p->module = m;
	p->entry = site;
	p->roles = roles;
	site->entry = p;
	tl_vec_push(&es->probes, p);
	if (roles & TL_ROLE_MEASURE)
		e->probed++;
}

static bool matches(const struct tl_pattern *pattern, const struct tl_func *f)
{
	return pattern && tl_pattern_matches(pattern, f, tl_image_is_program(f->image));
}

static unsigned roles_of(const struct tl_exact *e, const struct tl_func *f, bool is_main)
{
	unsigned roles = 0;

	if (matches(e->within, f))
		roles |= TL_ROLE_WITHIN | TL_ROLE_MEASURE;
	if (matches(e->start_on, f))
		roles |= TL_ROLE_START;
	if (matches(e->stop_on, f))
		roles |= TL_ROLE_STOP;
	if (tl_select_func(e->options.select, f, is_main))
		roles |= TL_ROLE_MEASURE;
	return roles;
}

struct update {
	struct tl_exact *e;
	struct tl_exact_space *es;
};

static void came(void *ctx, struct tl_module *m)
{
	struct update *u = ctx;
	const struct tl_exact_options *o = &u->e->options;
	bool wanted = tl_select_module(o->select, m->image, m->is_main), named;
	const struct tl_func *funcs, *loader;
	size_t n;

	find_stub(u->es, m);
	named = m->is_main && (o->within || o->start_on || o->stop_on);
	if (wanted || named) {
		n = tl_image_funcs(m->image, &funcs);
		for (size_t i = 0; i < n; i++) {
			unsigned roles = roles_of(u->e, &funcs[i], m->is_main);

			if (!wanted)
				roles &= ~TL_ROLE_MEASURE | (roles & TL_ROLE_WITHIN ? TL_ROLE_MEASURE : 0);
			if (roles)
				add_probe(u->e, u->es, m, &funcs[i], roles);
		}
	}
	/* The dynamic linker calls this (empty) function when its list of modules has
	 * changed: gdb's interface, see <link.h>. */
	if (strncmp(tl_image_short_name(m->image), "ld", 2) == 0 &&
	    (loader = tl_image_func_named(m->image, "_dl_debug_state")))
		add_probe(u->e, u->es, m, loader, TL_ROLE_LOADER);
}

/* A function of one module may return into another. */
static void drop_references(struct tl_probe *p, const struct tl_module *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->returns.n; i++)
		if (p->returns.at[i]->at.u - m->lo.u >= m->hi.u - m->lo.u)
			p->returns.at[kept++] = p->returns.at[i];
	p->returns.n = kept;
	if (p->module == m) {
		p->exits.n = 0;
		p->entry = NULL;
	}
}

static void gone(void *ctx, struct tl_module *m)
{
	struct update *u = ctx;
	struct tl_exact_space *es = u->es;
	size_t kept = 0;

	for (size_t i = 0; i < es->probes.n; i++) {
		struct tl_probe *p = es->probes.at[i];

		drop_references(p, m);
		if (p->module != m || p->open) { /* open: its frames still point to it */
			es->probes.at[kept++] = p;
			continue;
		}
		tl_vec_fini(&p->exits);
		tl_vec_fini(&p->returns);
		free(p);
	}
	es->probes.n = kept;
	tl_sites_drop(&es->sites, (struct tl_vrange){m->lo, m->hi});
	if (es->stub.u >= m->lo.u && es->stub.u < m->hi.u)
		es->stub.u = 0;
	tl_unwinder_flush(es->unwinder);
}

int tl_probes_update(struct tl_exact *e, struct tl_exact_space *es)
{
	struct update u = {e, es};
	int r = tl_modules_update(&es->modules, e->images, es->space->any, gone, came, &u);

	return r == TL_OK ? tl_probes_arm(e, es) : r;
}

bool tl_probe_active(const struct tl_exact *e, const struct tl_probe *p, unsigned role)
{
	if (!p->entry || !(p->roles & role))
		return false;
	switch (role) {
	case TL_ROLE_MEASURE:
		return e->measuring && !p->function->disarmed;
	case TL_ROLE_START:
		return !e->measuring;
	case TL_ROLE_STOP:
		return e->measuring;
	case TL_ROLE_LOADER:
		return true;
	default:
		return e->measuring;
	}
}

/* One byte may be an entry, and an exit of another function or where one returns to. */
void tl_probes_settle(const struct tl_exact *e, struct tl_exact_space *es, struct tl_site *site)
{
	const struct tl_probe *p = site->entry;
	bool wanted = site->exits || site->returns;

	for (unsigned role = 1; p && role <= TL_ROLE_WITHIN; role *= 2)
		wanted |= tl_probe_active(e, p, role);
	tl_site_want(&es->sites, site, wanted);
}

int tl_probes_arm(struct tl_exact *e, struct tl_exact_space *es)
{
	for (size_t i = 0; i < es->probes.n; i++)
		if (es->probes.at[i]->entry)
			tl_probes_settle(e, es, es->probes.at[i]->entry);
	return tl_sites_apply(&es->sites);
}

int tl_probes_make_ready(struct tl_exact_space *es, struct tl_task *t, tl_vaddr site_at)
{
	int r;

	if (tl_scratch_is_mapped(&es->sites.scratch))
		return tl_scratch_flush(&es->sites.scratch, es->space->mem_fd);
	if (!es->stub.u)
		return tl_fail(-ENOSPC, "no executable byte is unused in process %d: room for "
					"displaced instructions cannot be mapped", t->process->pid);
	/* Should we die in the middle, it is at the breakpoint again, not one byte after. */
	if (site_at.u && (r = tl_ptrace_set_pc(t->tid, site_at)) != TL_OK)
		return r;
	if (!t->reaped && t->state == TL_TASK_STOPPED && site_at.u) {
		if ((r = tl_wait_reap(t->tid)) != TL_OK)
			return r;
		t->reaped = true;
	}
	return tl_scratch_map(&es->sites.scratch, t->tid, es->space->mem_fd, es->stub);
}

struct tl_probe *tl_probe_holding(struct tl_exact_space *es, tl_vaddr pc)
{
	const struct tl_module *m = tl_modules_at(&es->modules, pc);
	const struct tl_func *f = m ? tl_image_func_at(m->image, tl_module_faddr(m, pc)) : NULL;
	const struct tl_site *site = f ? tl_site_at(&es->sites, tl_module_vaddr(m, f->entry)) : NULL;

	return site ? site->entry : NULL;
}

/* Arms what was noted while T is held at a site. */
static int apply_at_stop(struct tl_exact_space *es, struct tl_task *t)
{
	int r = tl_sites_apply(&es->sites);

	return r == TL_OK ? tl_probes_make_ready(es, t, t->site_at) : r;
}

static int watch_exits(struct tl_exact_space *es, struct tl_probe *p, const struct tl_exits *found)
{
	for (size_t i = 0; i < found->n; i++) {
		struct tl_site *site;
		int r = get_site(es, p->module, found->at[i].at, &site);

		if (r < 0)
			return r;
		site->exits++;
		tl_vec_push(&p->exits, site);
		tl_site_want(&es->sites, site, true);
	}
	return TL_OK;
}

int tl_probe_walk(struct tl_exact_space *es, struct tl_probe *p, struct tl_task *t)
{
	const struct tl_func *f = p->function->func;
	size_t n = f->n_ranges ? f->n_ranges : 1;
	struct tl_vrange *ranges = tl_calloc(n, sizeof *ranges);
	struct tl_code code = {es, read_code, ranges, n, p->entry->at};
	struct tl_exits found = {0};
	int r;

	p->walked = true;
	for (size_t i = 0; i < f->n_ranges; i++)
		ranges[i] = (struct tl_vrange){tl_module_vaddr(p->module, f->ranges[i].lo),
					       tl_module_vaddr(p->module, f->ranges[i].hi)};
	if (!f->n_ranges)
		ranges[0] = (struct tl_vrange){p->entry->at, {p->entry->at.u + f->size}};
	r = tl_exits_find(tl_arch_native(), &code, &found);
	p->loops = found.jumps_to_entry;
	p->use_return_site = r < 0 || found.use_return_site;
	if (!p->use_return_site && watch_exits(es, p, &found) < 0) {
		tl_debug("%s: an exit cannot be watched (%s)", f->name, tl_error_text());
		p->use_return_site = true;
	}
	tl_exits_fini(&found);
	free(ranges);
	return apply_at_stop(es, t);
}

int tl_probe_watch_return(struct tl_exact_space *es, struct tl_probe *p, struct tl_task *t,
			  uint64_t sp)
{
	const struct tl_module *m;
	struct tl_site *site;
	uint64_t to;
	int r = tl_ptrace_peek(t->tid, (tl_vaddr){sp}, &to);

	if (r != TL_OK)
		return r == -EIO ? TL_OK : r;
	site = tl_site_at(&es->sites, (tl_vaddr){to});
	if (site && site->returns && site->wanted)
		return TL_OK;
	m = tl_modules_at(&es->modules, (tl_vaddr){to});
	/* Code without a file is not written to; the frame is closed by whatever happens next
	 * above it. */
	if (!m || get_site(es, m, (tl_vaddr){to}, &site) < 0)
		return TL_OK;
	site->returns++;
	tl_vec_push(&p->returns, site);
	tl_site_want(&es->sites, site, true);
	return apply_at_stop(es, t);
}

void tl_probe_retire(const struct tl_exact *e, struct tl_exact_space *es, struct tl_probe *p)
{
	for (size_t i = 0; i < p->exits.n; i++) {
		p->exits.at[i]->exits--;
		tl_probes_settle(e, es, p->exits.at[i]);
	}
	for (size_t i = 0; i < p->returns.n; i++) {
		p->returns.at[i]->returns--;
		tl_probes_settle(e, es, p->returns.at[i]);
	}
	tl_vec_fini(&p->exits);
	tl_vec_fini(&p->returns);
	p->walked = false;
	tl_sites_apply(&es->sites);
}

static bool unwind_module(void *ctx, tl_vaddr pc, struct tl_unwind_module *out)
{
	struct tl_exact_space *es = ctx;
	const struct tl_module *m = tl_modules_at(&es->modules, pc);

	if (!m)
		return false;
	*out = (struct tl_unwind_module){.lo = m->lo, .hi = m->hi, .bias = m->bias, .key = m};
	tl_image_eh_frame_hdr(m->image, &out->eh_frame_hdr, &out->eh_frame_hdr_size);
	return true;
}

static size_t unwind_read(void *ctx, tl_vaddr at, void *buf, size_t n)
{
	return read_code(ctx, at, buf, n);
}

struct tl_exact_space *tl_exact_space_new(struct tl_space *sp)
{
	struct tl_exact_space *es = tl_calloc(1, sizeof *es);
	struct tl_unwind_source source = {es, unwind_module, unwind_read};
	struct tl_proc_status st;

	es->space = sp;
	es->sites.mem_fd = sp->mem_fd;
	es->sites.changes = &sp->changes;
	/* Under seccomp a system call of ours might kill it. */
	es->sites.scratch.may_map = tl_proc_status(sp->any, &st) != TL_OK || st.seccomp == 0;
	es->unwinder = tl_unwinder_new(&source);
	sp->client = es;
	return es;
}

struct copying {
	struct tl_exact *e;
	struct tl_exact_space *to;
};

static void *copy_probe(void *ctx, void *entry)
{
	struct copying *c = ctx;
	const struct tl_probe *from = entry;
	struct tl_probe *p = tl_malloc(sizeof *p);

	*p = (struct tl_probe){
		.function = from->function,
		.roles = from->roles,
		.module = tl_modules_at(&c->to->modules, from->entry->at),
		.loops = from->loops,
		.use_return_site = from->use_return_site,
		.walked = from->walked,
	};
	tl_vec_push(&c->to->probes, p);
	return p;
}

static void copy_references(struct tl_exact_space *from, struct tl_exact_space *to)
{
	for (size_t i = 0; i < from->probes.n; i++) {
		const struct tl_probe *f = from->probes.at[i];
		struct tl_site *entry = f->entry ? tl_site_at(&to->sites, f->entry->at) : NULL;
		struct tl_probe *t = entry ? entry->entry : NULL;

		if (!t)
			continue;
		t->entry = entry;
		for (size_t k = 0; k < f->exits.n; k++)
			tl_vec_push(&t->exits, tl_site_at(&to->sites, f->exits.at[k]->at));
		for (size_t k = 0; k < f->returns.n; k++)
			tl_vec_push(&t->returns, tl_site_at(&to->sites, f->returns.at[k]->at));
	}
}

int tl_exact_space_copy(struct tl_exact *e, struct tl_exact_space *from, struct tl_space *child)
{
	struct tl_exact_space *to = tl_exact_space_new(child);
	struct copying c = {e, to};
	int r = tl_modules_update(&to->modules, e->images, child->any, NULL, NULL, NULL);

	to->stub = from->stub;
	to->slot_in_signal = from->slot_in_signal;
	tl_sites_copy(&from->sites, &to->sites, copy_probe, &c);
	copy_references(from, to);
	return r;
}

void tl_exact_space_free(struct tl_exact_space *es)
{
	for (size_t i = 0; i < es->probes.n; i++) {
		tl_vec_fini(&es->probes.at[i]->exits);
		tl_vec_fini(&es->probes.at[i]->returns);
		free(es->probes.at[i]);
	}
	tl_vec_fini(&es->probes);
	tl_sites_fini(&es->sites);
	tl_modules_fini(&es->modules);
	tl_unwinder_free(es->unwinder);
	free(es);
}
