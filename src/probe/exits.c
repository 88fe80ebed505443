#include "probe/exits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"

enum {
	MAX_INSTRUCTIONS = 200000,
	MAX_BYTES = 16 << 20,
	MAX_PATH = 64,
	MAX_TABLE = 1 << 16,
};

/* What is known of each byte. */
enum {
	START = 1,   /* an instruction begins */
	INSIDE = 2,  /* of one that began before */
	TARGET = 4,  /* jumped to */
	TARGETS = 8, /* from several places */
};

struct part {
	uint64_t lo, hi;
	uint8_t *bytes, *map;
	size_t n; /* bytes that could be read, from lo */
};

struct edge {
	uint64_t from, to;
};

struct table_jump {
	uint64_t at;
	bool known;
	struct tl_jump_table table;
};

struct walk {
	bool has_frame;
	const struct tl_arch *arch;
	const struct tl_code *code;
	struct tl_exits *out;
	struct part *part;
	size_t n_parts;
	TL_VEC(uint64_t) todo;
	TL_VEC(struct edge) edges;
	TL_VEC(struct table_jump) jumps;
	TL_VEC(struct tl_exit) exits;
};

static void give_up(struct walk *w, const char *why)
{
	if (!w->out->use_return_site)
		w->out->why = why;
	w->out->use_return_site = true;
}

static struct part *part_of(struct walk *w, uint64_t at)
{
	for (size_t i = 0; i < w->n_parts; i++)
		if (at >= w->part[i].lo && at < w->part[i].hi)
			return &w->part[i];
	return NULL;
}

static int decode(struct walk *w, const struct part *p, uint64_t at, struct tl_insn *out)
{
	size_t i = at - p->lo;

	if (i >= p->n)
		return -EILSEQ;
	return w->arch->decode(p->bytes + i, p->n - i, (tl_vaddr){at}, out);
}

static void jump_inside(struct walk *w, const struct part *p, uint64_t from, uint64_t to)
{
	uint8_t *m = &p->map[to - p->lo];

	if (to == w->code->entry.u)
		w->out->jumps_to_entry = true;
	*m |= *m & TARGET ? TARGETS : TARGET;
	tl_vec_push(&w->edges, (struct edge){from, to});
	tl_vec_push(&w->todo, to);
}

static void jump(struct walk *w, uint64_t at, const struct tl_insn *in)
{
	const struct part *p = part_of(w, in->target.u);

	if (p)
		jump_inside(w, p, at, in->target.u);
	else
		tl_vec_push(&w->exits,
			    (struct tl_exit){{at},
					     in->flow == TL_FLOW_JUMP ? TL_EXIT_JUMP : TL_EXIT_BRANCH,
					     in->target});
}

/* Whether control goes on behind the instruction. */
static bool leave(struct walk *w, uint64_t at, const struct tl_insn *in)
{
	switch (in->flow) {
	case TL_FLOW_NEXT:
	case TL_FLOW_CALL_INDIRECT:
		return true;
	case TL_FLOW_CALL:
		/* One of its own parts used as a subroutine: its return is not the function's.
		 * A call of what follows only reads the pc. */
		if (in->target.u != w->code->entry.u && in->target.u != at + in->length &&
		    part_of(w, in->target.u))
			give_up(w, "calls into its own middle");
		return true;
	case TL_FLOW_BRANCH:
		jump(w, at, in);
		return true;
	case TL_FLOW_JUMP:
		jump(w, at, in);
		return false;
	case TL_FLOW_JUMP_INDIRECT:
		tl_vec_push(&w->jumps, (struct table_jump){.at = at});
		return false;
	case TL_FLOW_RETURN:
		tl_vec_push(&w->exits, (struct tl_exit){{at}, TL_EXIT_RETURN, {0}});
		return false;
	case TL_FLOW_STOP:
		break;
	}
	return false;
}

static bool claim(struct walk *w, const struct part *p, uint64_t at, const struct tl_insn *in)
{
	uint8_t *m = p->map + (at - p->lo);

	for (unsigned i = 0; i < in->length; i++) {
		if (m[i] & (START | INSIDE)) {
			give_up(w, "overlapping instructions");
			return false;
		}
	}
	m[0] |= START;
	for (unsigned i = 1; i < in->length; i++)
		m[i] |= INSIDE;
	return true;
}

/* From AT to where control does not go on or has been before. */
static void walk_block(struct walk *w, uint64_t at)
{
	const struct part *p = part_of(w, at);
	bool after_call = false, on = true;
	struct tl_insn in;

	for (; on; at += in.length) {
		if (at >= p->hi) {
			if (!after_call)
				give_up(w, "control runs past its end");
			return;
		}
		if (p->map[at - p->lo] & START)
			return;
		if (w->out->instructions >= MAX_INSTRUCTIONS) {
			give_up(w, "too many instructions");
			return;
		}
		if (decode(w, p, at, &in) || at + in.length > p->hi) {
			give_up(w, "an instruction that cannot be decoded");
			return;
		}
		if (!claim(w, p, at, &in))
			return;
		w->out->instructions++;
		w->has_frame |= in.moves_sp || in.flow == TL_FLOW_CALL ||
				in.flow == TL_FLOW_CALL_INDIRECT;
		on = leave(w, at, &in);
		if (!in.is_nop)
			after_call = in.flow == TL_FLOW_CALL || in.flow == TL_FLOW_CALL_INDIRECT;
	}
}

static void walk_all(struct walk *w)
{
	while (w->todo.n)
		walk_block(w, w->todo.at[--w->todo.n]);
}

/* The instruction that control falls through from to AT. */
static bool falls_into(struct walk *w, uint64_t at, uint64_t *from)
{
	const struct part *p = part_of(w, at);
	uint64_t back = at;
	struct tl_insn in;

	do {
		if (back == p->lo)
			return false;
		back--;
	} while (p->map[back - p->lo] == INSIDE);
	if (!(p->map[back - p->lo] & START) || decode(w, p, back, &in) || back + in.length != at)
		return false;
	*from = back;
	return in.flow != TL_FLOW_JUMP && in.flow != TL_FLOW_JUMP_INDIRECT &&
	       in.flow != TL_FLOW_RETURN && in.flow != TL_FLOW_STOP;
}

/* The only instruction that AT is reached from, if it is only one. */
static bool comes_from(struct walk *w, uint64_t at, uint64_t *from, bool *taken)
{
	const struct part *p = part_of(w, at);
	uint8_t m = p->map[at - p->lo];
	bool falls = falls_into(w, at, from);

	*taken = !falls;
	if (at == w->code->entry.u || (m & TARGETS) || (falls && (m & TARGET)))
		return false;
	for (size_t i = 0; !falls && i < w->edges.n; i++) {
		if (w->edges.at[i].to == at) {
			*from = w->edges.at[i].from;
			return true;
		}
	}
	return falls;
}

static bool recognise(struct walk *w, uint64_t at, struct tl_jump_table *out)
{
	struct tl_path_insn path[MAX_PATH];
	size_t i = MAX_PATH;
	bool taken = true;
	struct tl_insn in;

	for (;;) {
		const struct part *p = part_of(w, at);
		struct tl_path_insn *s = &path[--i];

		if (decode(w, p, at, &in))
			return false;
		*s = (struct tl_path_insn){.at = {at}, .length = in.length, .taken = taken};
		memcpy(s->bytes, p->bytes + (at - p->lo), in.length);
		if (!i || !comes_from(w, at, &at, &taken))
			break;
	}
	return w->arch->jump_table(path + i, MAX_PATH - i, out);
}

static bool follow_table(struct walk *w, const struct table_jump *j)
{
	const struct tl_jump_table *t = &j->table;
	size_t size = t->entries * t->size;
	uint8_t *raw;
	bool ok;

	if (t->entries > MAX_TABLE)
		return false;
	raw = tl_malloc(size);
	ok = w->code->read(w->code->ctx, t->table, raw, size) == size;
	for (uint64_t i = 0; ok && i < t->entries; i++) {
		const struct part *p;
		uint64_t to;
		int32_t far;

		if (t->size == 4) {
			memcpy(&far, raw + i * 4, 4);
			to = t->base.u + (uint64_t)(int64_t)far;
		} else {
			memcpy(&to, raw + i * 8, 8);
		}
		p = part_of(w, to);
		ok = p != NULL;
		if (p)
			jump_inside(w, p, j->at, to);
	}
	free(raw);
	return ok;
}

static bool same(const struct tl_jump_table *x, const struct tl_jump_table *y)
{
	return x->table.u == y->table.u && x->base.u == y->base.u && x->entries == y->entries &&
	       x->size == y->size;
}

/* Tables lead to more code, and that to more tables; new code may also jump into the middle of
 * a path that a table was recognised on, so that all are looked at again at the end. */
static void walk_tables(struct walk *w)
{
	struct tl_jump_table again;
	bool more = w->jumps.n > 0;

	while (more) {
		more = false;
		for (size_t i = 0; i < w->jumps.n; i++) {
			struct table_jump j = w->jumps.at[i];

			if (j.known || !recognise(w, j.at, &j.table))
				continue;
			j.known = more = true;
			w->jumps.at[i] = j;
			if (!follow_table(w, &j))
				give_up(w, "a jump table that leads out of it");
			walk_all(w);
		}
	}
	for (size_t i = 0; i < w->jumps.n && !w->out->use_return_site; i++) {
		struct table_jump *j = &w->jumps.at[i];

		if (!j->known || !recognise(w, j->at, &again) || !same(&j->table, &again))
			give_up(w, "indirect tail call or jump");
	}
}

static int init(struct walk *w)
{
	const struct tl_code *c = w->code;
	size_t total = 0;

	w->part = tl_calloc(c->n_ranges, sizeof *w->part);
	for (size_t i = 0; i < c->n_ranges; i++) {
		struct part *p = &w->part[i];
		size_t n = c->ranges[i].hi.u - c->ranges[i].lo.u;

		total += n;
		if (c->ranges[i].hi.u < c->ranges[i].lo.u || total > MAX_BYTES)
			return tl_fail(-EFBIG, "the function at 0x%" PRIx64 " is too large to walk",
				       c->entry.u);
		w->n_parts++;
		*p = (struct part){.lo = c->ranges[i].lo.u, .hi = c->ranges[i].hi.u};
		p->bytes = tl_malloc(n);
		p->map = tl_calloc(n, 1);
		p->n = c->read(c->ctx, c->ranges[i].lo, p->bytes, n);
	}
	return TL_OK;
}

static void fini(struct walk *w)
{
	for (size_t i = 0; i < w->n_parts; i++) {
		free(w->part[i].bytes);
		free(w->part[i].map);
	}
	free(w->part);
	tl_vec_fini(&w->todo);
	tl_vec_fini(&w->edges);
	tl_vec_fini(&w->jumps);
	tl_vec_fini(&w->exits);
}

static int by_address(const void *a, const void *b)
{
	const struct tl_exit *x = a, *y = b;

	return x->at.u < y->at.u ? -1 : x->at.u > y->at.u;
}

int tl_exits_find(const struct tl_arch *arch, const struct tl_code *code, struct tl_exits *out)
{
	struct walk w = {.arch = arch, .code = code, .out = out};
	struct tl_insn first;
	const struct part *p;
	int r;

	*out = (struct tl_exits){0};
	r = init(&w);
	if (r)
		goto out;
	p = part_of(&w, code->entry.u);
	if (!p || decode(&w, p, code->entry.u, &first)) {
		r = tl_fail(-EILSEQ, "no instruction at the entry 0x%" PRIx64, code->entry.u);
		goto out;
	}
	tl_vec_push(&w.todo, code->entry.u);
	walk_all(&w);
	walk_tables(&w);
	if (w.exits.n)
		qsort(w.exits.at, w.exits.n, sizeof *w.exits.at, by_address);
	out->jumps_to_entry &= !w.has_frame;
	out->at = w.exits.at;
	out->n = w.exits.n;
	w.exits.at = NULL;
out:
	fini(&w);
	return r;
}

void tl_exits_fini(struct tl_exits *e)
{
	free(e->at);
	*e = (struct tl_exits){0};
}
