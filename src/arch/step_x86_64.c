#include "arch/x86_64.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"

/* What the makers of steps share. */
struct job {
	const uint8_t *b;
	struct tl_shape shape;
	struct tl_insn insn;
	tl_vaddr at, slot;
	bool real_call;
	struct tl_step *out;
};

static void put(struct job *j, const void *bytes, size_t n)
{
	memcpy(j->out->code + j->out->length, bytes, n);
	j->out->length = (uint8_t)(j->out->length + n);
}

static void put32(struct job *j, uint32_t v)
{
	put(j, &v, 4);
}

static void place(struct job *j, int sp_add, tl_vaddr pc)
{
	j->out->places[j->out->n_places++] =
		(struct tl_place){j->out->length, (int8_t)sp_add, pc};
}

static bool fits32(int64_t v)
{
	return v == (int32_t)v;
}

/* Changes no register and no flag, and reaches everywhere: a target may lie 2 GiB behind the
 * code and the slot 2 GiB before it. */
static void put_jump(struct job *j, tl_vaddr to)
{
	int64_t far = (int64_t)(to.u - (j->slot.u + j->out->length + 5));

	if (fits32(far)) {
		put(j, (const uint8_t[]){0xe9}, 1);
		put32(j, (uint32_t)far);
		return;
	}
	put(j, (const uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6); /* jmp *0(%rip) */
	put(j, &to.u, 8);
}

static bool rip_relative(const struct tl_shape *s)
{
	return s->modrm_at && (s->modrm & 0xc7) == 0x05;
}

/* The displacement follows the operand byte whatever the encoding; an immediate behind it
 * belongs to the length that the pc has moved by. CODE is the copy's index in the slot. */
static int fix_rip(struct job *j, size_t code)
{
	uint8_t *disp = j->out->code + code + j->shape.modrm_at + 1;
	int32_t was;
	int64_t now;

	if (j->shape.addrsize)
		return tl_fail(-ENOTSUP, "operand relative to the 32-bit pc at 0x%" PRIx64, j->at.u);
	memcpy(&was, disp, 4);
	now = (int64_t)(j->at.u + (uint64_t)(int64_t)was - (j->slot.u + code));
	if (!j->slot.u)
		return TL_OK;
	if (!fits32(now))
		return tl_fail(-ERANGE,
			       "slot 0x%" PRIx64 " is too far for the operand of 0x%" PRIx64,
			       j->slot.u, j->at.u);
	was = (int32_t)now;
	memcpy(disp, &was, 4);
	return TL_OK;
}

static int put_copy(struct job *j)
{
	size_t code = j->out->length;

	put(j, j->b, j->insn.length);
	return rip_relative(&j->shape) ? fix_rip(j, code) : TL_OK;
}

/* [instruction][jump behind it]; without the jump when it never gets there. */
static int copy(struct job *j, bool goes_on)
{
	int r;

	place(j, 0, j->at);
	r = put_copy(j);
	j->out->done_at = j->out->length;
	if (goes_on) {
		place(j, 0, j->out->next);
		put_jump(j, j->out->next);
	}
	return r;
}

/* loop, jrcxz: their reach is 127 bytes, so they choose between two jumps inside the slot. */
static int count_branch(struct job *j)
{
	uint8_t *distance;
	uint8_t from;

	place(j, 0, j->at);
	put(j, j->b, j->insn.length);
	from = j->out->done_at = j->out->length;
	distance = j->out->code + from - 1;
	place(j, 0, j->out->next);
	put_jump(j, j->out->next);
	*distance = (uint8_t)(j->out->length - from);
	place(j, 0, j->insn.target);
	put_jump(j, j->insn.target);
	return TL_OK;
}

/* A transaction that aborts goes on at the target, so that it needs the distance from here. */
static int transaction(struct job *j)
{
	int64_t far = (int64_t)(j->insn.target.u - (j->slot.u + j->insn.length));
	int32_t distance = (int32_t)far;

	if (j->slot.u && !fits32(far))
		return tl_fail(-ERANGE, "slot 0x%" PRIx64 " is too far from xbegin's target",
			       j->slot.u);
	copy(j, true);
	memcpy(j->out->code + j->insn.length - 4, &distance, 4);
	return TL_OK;
}

/* The return address of the original place, without touching a register or flag: a push of
 * 32 bits, sign-extended, and the upper half where that is not it. Between the two a task
 * can be found with the stack pointer moved. */
static void put_return_address(struct job *j)
{
	uint64_t address = j->out->next.u;

	place(j, 0, j->at);
	put(j, (const uint8_t[]){0x68}, 1); /* push imm32 */
	put32(j, (uint32_t)address);
	place(j, 8, j->at);
	if (!fits32((int64_t)address)) {
		put(j, (const uint8_t[]){0xc7, 0x44, 0x24, 0x04}, 4); /* movl imm32,4(%rsp) */
		put32(j, (uint32_t)(address >> 32));
	}
}

static int call(struct job *j)
{
	/* A shadow stack holds what call pushed, so that this form's return would fault
	 * (#CP) where one is on: see make_step_real_call(). */
	put_return_address(j);
	j->out->done_at = j->out->length;
	place(j, 0, j->insn.target);
	put_jump(j, j->insn.target);
	return TL_OK;
}

static int real_call(struct job *j)
{
	int64_t far = (int64_t)(j->insn.target.u - (j->slot.u + 5));

	if (j->insn.flow == TL_FLOW_CALL_INDIRECT)
		return copy(j, true);
	place(j, 0, j->at);
	if (fits32(far)) {
		put(j, (const uint8_t[]){0xe8}, 1);
		put32(j, (uint32_t)far);
	} else { /* call *2(%rip), over the address that follows the jump over it */
		put(j, (const uint8_t[]){0xff, 0x15, 2, 0, 0, 0, 0xeb, 8}, 8);
		put(j, &j->insn.target.u, 8);
	}
	j->out->done_at = fits32(far) ? 5 : 6;
	j->out->places[j->out->n_places++] = (struct tl_place){j->out->done_at, 0, j->out->next};
	put_jump(j, j->out->next);
	return TL_OK;
}

/* call *X as a push and a jmp *X. The push has moved the stack pointer by then: an operand
 * based on it counts from 8 more. */
static int call_indirect(struct job *j)
{
	const struct tl_shape *s = &j->shape;
	unsigned mod = s->modrm >> 6, rm = s->modrm & 7;
	bool sib = mod != 3 && rm == 4;
	uint8_t base = sib ? j->b[s->modrm_at + 1] & 7 : 0, jmp = 0;
	bool on_stack = sib && base == 4 && !(s->rex & 1);
	int32_t disp = 0;

	if ((s->modrm >> 3 & 7) == 3)
		return tl_fail(-ENOTSUP, "far call at 0x%" PRIx64, j->at.u);
	if (mod == 3 && rm == 4 && !(s->rex & 1))
		return tl_fail(-ENOTSUP, "call to the stack pointer at 0x%" PRIx64, j->at.u);
	if (on_stack && mod == 1)
		disp = (int8_t)j->b[s->modrm_at + 2];
	else if (on_stack && mod == 2)
		memcpy(&disp, j->b + s->modrm_at + 2, 4);
	/* Below the stack pointer lies what the push overwrites. */
	if (on_stack && (disp < 0 || disp > INT32_MAX - 8 || (s->rex & 2) ||
			 j->b[s->modrm_at + 1] != 0x24))
		return tl_fail(-ENOTSUP, "call through the unused stack at 0x%" PRIx64, j->at.u);
	put_return_address(j);
	j->out->done_at = jmp = j->out->length;
	if (!on_stack) {
		int r = put_copy(j);

		/* call is /2 of the opcode's group, jmp is /4 */
		j->out->code[jmp + s->modrm_at] = (uint8_t)((s->modrm & ~0x38) | 0x20);
		return r;
	}
	put(j, j->b, s->modrm_at);
	put(j, (const uint8_t[]){0xa4, 0x24}, 2); /* /4, disp32(%rsp) */
	put32(j, (uint32_t)(disp + 8));
	return TL_OK;
}

static int refuse(const struct job *j)
{
	const char *what = j->shape.map == TL_MAP_0F ? "an undefined instruction"
			   : j->shape.op == 0xf4     ? "hlt"
						     : "a trap of its own";

	/* Its fault is the point of it: a handler must see the pc where it stands. */
	return tl_fail(-ENOTSUP, "0x%" PRIx64 " holds %s, which cannot be displaced", j->at.u,
		       what);
}

static int make(struct job *j)
{
	const struct tl_shape *s = &j->shape;
	struct tl_step *out = j->out;

	out->kind = TL_STEP_SLOT;
	switch (j->insn.flow) {
	case TL_FLOW_NEXT:
		if (!j->insn.is_nop)
			return copy(j, true);
		out->kind = TL_STEP_FIXED;
		out->target = out->next;
		return TL_OK;
	case TL_FLOW_JUMP:
		out->kind = TL_STEP_FIXED;
		out->target = j->insn.target;
		return TL_OK;
	case TL_FLOW_BRANCH:
		out->target = j->insn.target;
		if (s->map == TL_MAP_1 && s->op == 0xc7)
			return transaction(j);
		if (s->map == TL_MAP_1 && s->op >= 0xe0)
			return count_branch(j);
		out->kind = TL_STEP_BRANCH;
		out->condition = s->op & 15;
		return TL_OK;
	case TL_FLOW_RETURN:
		if (s->op == 0xc3 && !s->opsize && !s->lock)
			out->kind = TL_STEP_RETURN;
		return out->kind == TL_STEP_RETURN ? TL_OK : copy(j, false);
	case TL_FLOW_JUMP_INDIRECT:
		return copy(j, false);
	case TL_FLOW_CALL:
		return j->real_call ? real_call(j) : call(j);
	case TL_FLOW_CALL_INDIRECT:
		return j->real_call ? real_call(j) : call_indirect(j);
	case TL_FLOW_STOP:
		break;
	}
	return refuse(j);
}

static int start(const uint8_t *b, size_t n, tl_vaddr at, tl_vaddr slot, bool real_call_form,
		 struct tl_step *out)
{
	struct job j = {.b = b, .at = at, .slot = slot, .real_call = real_call_form, .out = out};

	*out = (struct tl_step){.places = {{.pc = at}}};
	if (tl_x86_decode(b, n, at, &j.insn) || !tl_x86_shape(b, n, &j.shape))
		return tl_fail(-ENOTSUP, "0x%" PRIx64 " holds no known instruction", at.u);
	out->next.u = at.u + j.insn.length;
	return make(&j);
}

int tl_x86_make_step(const uint8_t *b, size_t n, tl_vaddr at, tl_vaddr slot, struct tl_step *out)
{
	return start(b, n, at, slot, false, out);
}

int tl_x86_make_step_real_call(const uint8_t *b, size_t n, tl_vaddr at, tl_vaddr slot,
			       struct tl_step *out)
{
	return start(b, n, at, slot, true, out);
}
