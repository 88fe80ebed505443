/* Jump tables of switch statements, as gcc and clang write them, with and without -fPIC:
 *
 *	cmp $N,%edi; ja default			jmp *tbl(,%rdi,8)
 *	lea tbl(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp *%rax
 *
 * Compilers order, spread and copy these at will, so the path is not matched but executed on
 * symbolic values: whatever an instruction writes that is not understood becomes a value that
 * equals nothing else. */
#include "arch/x86_64.h"

#include <capstone/capstone.h>
#include <stdlib.h>

#include "base/err.h"

enum kind {
	UNKNOWN, /* .id */
	CONST,	 /* .a */
	SCALED,	 /* value .id * .scale */
	MEMORY,	 /* value read at value .id + .a, the same as long as nothing is written */
	ENTRY,	 /* of the table at .a, .scale bytes each, index .id */
	TARGET,	 /* .b + such an entry */
};

struct value {
	enum kind kind;
	unsigned id;
	unsigned scale;
	uint64_t a, b;
	bool narrow; /* an entry of 4 bytes whose sign is not extended yet */
};

enum { N_REGS = 16, N_BOUNDS = 8 };

/* The low .size bytes of .v are not above .most. */
struct bound {
	struct value v;
	uint64_t most;
	unsigned size;
};

struct state {
	struct value reg[N_REGS];
	unsigned last_id;
	/* The last comparison, of .cmp with the constant .limit; dead once flags change. */
	bool compared;
	struct value cmp;
	unsigned cmp_size;
	uint64_t limit;
	struct bound bound[N_BOUNDS];
	unsigned n_bounds;
};

static const uint16_t names[N_REGS][5] = {
	{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
	{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
	{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
	{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
	{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL, 0},
	{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL, 0},
	{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL, 0},
	{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, 0},
	{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, 0},
	{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B, 0},
	{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B, 0},
	{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B, 0},
	{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B, 0},
	{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B, 0},
	{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B, 0},
	{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B, 0},
};

static int index_of(unsigned reg)
{
	if (reg == X86_REG_INVALID)
		return -1;
	for (int i = 0; i < N_REGS; i++)
		for (int w = 0; w < 5; w++)
			if (names[i][w] == reg)
				return i;
	return -1;
}

static bool is_high_byte(unsigned reg)
{
	return reg == X86_REG_AH || reg == X86_REG_BH || reg == X86_REG_CH || reg == X86_REG_DH;
}

static struct value fresh(struct state *s)
{
	return (struct value){.kind = UNKNOWN, .id = ++s->last_id};
}

static bool equal(const struct value *x, const struct value *y)
{
	return x->kind == y->kind && x->id == y->id && x->scale == y->scale && x->a == y->a &&
	       x->b == y->b && x->narrow == y->narrow;
}

static void note_bound(struct state *s, struct value v, uint64_t most, unsigned size)
{
	if (s->n_bounds < N_BOUNDS)
		s->bound[s->n_bounds++] = (struct bound){v, most, size};
}

/* What the low SIZE bytes of V cannot exceed. A bound of more bytes that fits into these is one
 * of theirs too, and where it does not fit it says nothing. */
static uint64_t bound_of(const struct state *s, const struct value *v, unsigned size)
{
	uint64_t most = size >= 8 ? UINT64_MAX : (UINT64_C(1) << size * 8) - 1, wide = most;

	for (unsigned i = 0; i < s->n_bounds; i++)
		if (equal(&s->bound[i].v, v) && s->bound[i].size >= size && s->bound[i].most < most)
			most = s->bound[i].most;
	/* A bound of fewer bytes is one of all when the others are known to be zero. */
	wide = most;
	for (unsigned i = 0; i < s->n_bounds; i++) {
		const struct bound *b = &s->bound[i];

		if (equal(&b->v, v) && b->size < size && wide <= (UINT64_C(1) << b->size * 8) - 1 &&
		    b->most < most)
			most = b->most;
	}
	return most;
}

static struct value reg_value(struct state *s, unsigned reg)
{
	int i = index_of(reg);

	return i < 0 || is_high_byte(reg) ? fresh(s) : s->reg[i];
}

static bool entry_of(const struct value *table, struct value index, unsigned scale, unsigned size,
		     struct value *out)
{
	if (index.kind == SCALED && scale == 1)
		scale = index.scale;
	else if (index.kind != UNKNOWN)
		return false;
	if (scale != size)
		return false;
	*out = (struct value){ENTRY, index.id, size, table->a, 0, size == 4};
	return true;
}

/* The value at a memory operand. Memory through a register alone is named by its address, so
 * that `cmpl $7,-4(%rbp); ja; mov -4(%rbp),%eax` compares what it loads. */
static struct value load(struct state *s, const cs_insn *in, const x86_op_mem *m, unsigned size)
{
	uint64_t disp = (uint64_t)m->disp;
	struct value base = {CONST, 0, 0, 0, 0, false}, index = {0}, v;

	if (m->segment != X86_REG_INVALID)
		return fresh(s);
	if (m->base == X86_REG_RIP)
		base.a = in->address + in->size;
	else if (m->base != X86_REG_INVALID)
		base = reg_value(s, m->base);
	if (m->index == X86_REG_INVALID) {
		if (base.kind == UNKNOWN)
			return (struct value){MEMORY, base.id, size, disp, 0, false};
		return fresh(s);
	}
	index = reg_value(s, m->index);
	base.a += base.kind == CONST ? disp : 0;
	if (base.kind == CONST && entry_of(&base, index, (unsigned)m->scale, size, &v))
		return v;
	/* (%index,%table,1) */
	if (index.kind == CONST && m->scale == 1) {
		index.a += disp;
		if (base.kind != CONST && entry_of(&index, base, 1, size, &v))
			return v;
	}
	return fresh(s);
}

/* A value read from memory gets an id when it first lands in a register; what was found out
 * about the memory goes with it. */
static struct value settle(struct state *s, struct value v)
{
	struct value now;

	if (v.kind != MEMORY)
		return v;
	now = fresh(s);
	for (unsigned i = 0, n = s->n_bounds; i < n; i++)
		if (equal(&s->bound[i].v, &v))
			note_bound(s, now, s->bound[i].most, s->bound[i].size);
	if (s->compared && equal(&s->cmp, &v))
		s->cmp = now;
	return now;
}

static struct value operand(struct state *s, const cs_insn *in, const cs_x86_op *op)
{
	switch (op->type) {
	case X86_OP_REG:
		return reg_value(s, op->reg);
	case X86_OP_IMM:
		return (struct value){CONST, 0, 0, (uint64_t)op->imm, 0, false};
	case X86_OP_MEM:
		return load(s, in, &op->mem, op->size);
	default:
		return fresh(s);
	}
}

static struct value address(struct state *s, const cs_insn *in, const x86_op_mem *m)
{
	struct value index;

	if (m->base == X86_REG_RIP && m->index == X86_REG_INVALID)
		return (struct value){CONST, 0, 0, in->address + in->size + (uint64_t)m->disp, 0,
				      false};
	if (m->base == X86_REG_INVALID && m->index == X86_REG_INVALID)
		return (struct value){CONST, 0, 0, (uint64_t)m->disp, 0, false};
	if (m->base == X86_REG_INVALID && m->disp == 0) {
		index = reg_value(s, m->index);
		if (index.kind == UNKNOWN)
			return (struct value){SCALED, index.id, (unsigned)m->scale, 0, 0, false};
	}
	return fresh(s);
}

static struct value sum(struct state *s, struct value x, struct value y)
{
	if (x.kind == CONST && y.kind == CONST)
		return (struct value){CONST, 0, 0, x.a + y.a, 0, false};
	if (x.kind == CONST) {
		struct value t = x;

		x = y;
		y = t;
	}
	if (x.kind == ENTRY && x.scale == 4 && !x.narrow && y.kind == CONST)
		return (struct value){TARGET, x.id, 4, x.a, y.a, false};
	return fresh(s);
}

/* The extension of V's low FROM bytes, 1 or 2, is another value, bounded by their width. */
static struct value widened(struct state *s, struct value v, unsigned from, bool sign)
{
	struct value now = fresh(s);
	uint64_t most = bound_of(s, &v, from);

	if (sign && most >> (from * 8 - 1))
		return now;
	note_bound(s, now, most, 8);
	if (s->compared && equal(&s->cmp, &v) && s->cmp_size == from && !sign)
		s->cmp = now;
	return now;
}

/* Copies with and without extension. From 32 bits an index keeps its value: a comparison of 32
 * bits is taken for one of the whole, since the code would be wrong if it were not. */
static struct value extended(struct state *s, const cs_insn *in, struct value v, unsigned from,
			     unsigned to)
{
	bool sign = in->id == X86_INS_MOVSX || in->id == X86_INS_MOVSXD || in->id == X86_INS_CDQE;

	if (v.kind == ENTRY && v.scale == 4) {
		v.narrow = v.narrow && !(sign && from == 4 && to == 8);
		return sign || to < 8 ? v : fresh(s);
	}
	if (v.kind == CONST) {
		if (from != to)
			return fresh(s);
		if (to == 4)
			v.a &= 0xffffffff;
		return v;
	}
	v = settle(s, v);
	if (from < 4)
		return widened(s, v, from, sign);
	return v.kind == UNKNOWN || (from == 8 && to == 8) ? v : fresh(s);
}

static void forget_memory(struct state *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n_bounds; i++)
		if (s->bound[i].v.kind != MEMORY)
			s->bound[kept++] = s->bound[i];
	s->n_bounds = kept;
	if (s->compared && s->cmp.kind == MEMORY)
		s->compared = false;
}

static void set(struct state *s, unsigned reg, unsigned size, struct value v)
{
	int i = index_of(reg);

	if (i >= 0)
		s->reg[i] = size >= 4 ? settle(s, v) : fresh(s);
}

/* Everything the instruction writes is unknown from here on. */
static void clobber(struct state *s, struct tl_capstone *d)
{
	cs_regs read, written;
	uint8_t n_read = 0, n_written = 0;
	const cs_x86 *x = &d->insn->detail->x86;
	int i;

	if (cs_regs_access(d->handle, d->insn, read, &n_read, written, &n_written)) {
		for (i = 0; i < N_REGS; i++)
			s->reg[i] = fresh(s);
		s->compared = false;
		forget_memory(s);
		return;
	}
	/* Its tables of what is written have gaps: a first operand counts, too. */
	if (x->op_count && x->operands[0].type == X86_OP_REG &&
	    (i = index_of(x->operands[0].reg)) >= 0 && d->insn->id != X86_INS_TEST &&
	    d->insn->id != X86_INS_PUSH)
		s->reg[i] = fresh(s);
	for (unsigned w = 0; w < n_written; w++) {
		i = index_of(written[w]);
		if (i >= 0)
			s->reg[i] = fresh(s);
		if (written[w] == X86_REG_EFLAGS)
			s->compared = false;
	}
	/* Any memory operand not known to be read only counts as written. push writes below
	 * what anybody compared. */
	for (i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].access != CS_AC_READ &&
		    d->insn->id != X86_INS_LEA && d->insn->id != X86_INS_NOP)
			forget_memory(s);
}

static void compare(struct state *s, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	struct value x = operand(s, in, &op[0]), y = operand(s, in, &op[1]);

	/* The comparison of a byte leaves open what the rest of the register holds: the
	 * index must then be an extension of it, which keeps the value (extended()). */
	s->compared = y.kind == CONST && (x.kind == UNKNOWN || x.kind == MEMORY) &&
		      (op[0].type != X86_OP_REG || !is_high_byte(op[0].reg));
	s->cmp = x;
	s->cmp_size = op[0].size;
	s->limit = op[0].size >= 8 ? y.a : y.a & ((UINT64_C(1) << op[0].size * 8) - 1);
}

static void branch(struct state *s, const cs_insn *in, bool taken)
{
	if (!s->compared)
		return;
	if ((in->id == X86_INS_JA && !taken) || (in->id == X86_INS_JBE && taken))
		note_bound(s, s->cmp, s->limit, s->cmp_size);
	else if (((in->id == X86_INS_JAE && !taken) || (in->id == X86_INS_JB && taken)) && s->limit)
		note_bound(s, s->cmp, s->limit - 1, s->cmp_size);
}

static void mask(struct state *s, const cs_insn *in, struct tl_capstone *d)
{
	const cs_x86_op *op = in->detail->x86.operands;
	bool constant = op[0].type == X86_OP_REG && op[0].size >= 4 && op[1].type == X86_OP_IMM &&
			op[1].imm >= 0;

	clobber(s, d);
	if (constant && index_of(op[0].reg) >= 0)
		note_bound(s, s->reg[index_of(op[0].reg)], (uint64_t)op[1].imm, 8);
}

static void execute(struct state *s, struct tl_capstone *d, bool taken)
{
	const cs_insn *in = d->insn;
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;
	struct value v;

	switch (in->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
		if (op[0].type != X86_OP_REG)
			break;
		v = extended(s, in, operand(s, in, &op[1]), op[1].size, op[0].size);
		set(s, op[0].reg, op[0].size, v);
		return;
	case X86_INS_CDQE:
		s->reg[0] = extended(s, in, s->reg[0], 4, 8);
		return;
	case X86_INS_LEA:
		set(s, op[0].reg, op[0].size, op[0].size == 8 ? address(s, in, &op[1].mem) : fresh(s));
		return;
	case X86_INS_ADD:
		if (op[0].type != X86_OP_REG || op[0].size != 8)
			break;
		v = sum(s, reg_value(s, op[0].reg), operand(s, in, &op[1]));
		clobber(s, d);
		set(s, op[0].reg, 8, v);
		return;
	case X86_INS_AND:
		mask(s, in, d);
		return;
	case X86_INS_CMP:
		compare(s, in);
		return;
	case X86_INS_JA:
	case X86_INS_JBE:
	case X86_INS_JAE:
	case X86_INS_JB:
		branch(s, in, taken);
		return;
	default:
		break;
	}
	clobber(s, d);
}

/* What the last instruction of the path, the jump, jumps to. */
static bool conclude(struct state *s, const cs_insn *in, struct tl_jump_table *out)
{
	const cs_x86 *x = &in->detail->x86;
	struct value v, index;
	uint64_t most;

	if (in->id != X86_INS_JMP || x->op_count != 1)
		return false;
	v = operand(s, in, &x->operands[0]);
	if (!(v.kind == TARGET || (v.kind == ENTRY && v.scale == 8)))
		return false;
	index = (struct value){.kind = UNKNOWN, .id = v.id};
	most = bound_of(s, &index, 4);
	if (most > 0xffff)
		return false;
	*out = (struct tl_jump_table){{v.a}, {v.b}, most + 1, (uint8_t)v.scale};
	return true;
}

bool tl_x86_jump_table(const struct tl_path_insn *path, size_t n, struct tl_jump_table *out)
{
	struct tl_capstone *d = tl_x86_capstone(true);
	struct state s = {0};

	for (int i = 0; i < N_REGS; i++)
		s.reg[i] = fresh(&s);
	for (size_t i = 0; d && i < n; i++) {
		const uint8_t *b = path[i].bytes;
		size_t left = path[i].length;
		uint64_t at = path[i].at.u;
		struct tl_insn insn;

		/* Unknown to Capstone (AVX-512): what it writes is, too. Calls end a path. */
		if (!cs_disasm_iter(d->handle, &b, &left, &at, d->insn) ||
		    d->insn->size != path[i].length)
			return false;
		if (i + 1 == n)
			return conclude(&s, d->insn, out);
		if (tl_x86_decode(path[i].bytes, path[i].length, path[i].at, &insn))
			return false;
		if (insn.flow == TL_FLOW_CALL || insn.flow == TL_FLOW_CALL_INDIRECT) {
			struct state all = {.last_id = s.last_id};

			s = all;
			for (int r = 0; r < N_REGS; r++)
				s.reg[r] = fresh(&s);
			continue;
		}
		execute(&s, d, path[i].taken);
	}
	return false;
}
