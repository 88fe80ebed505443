#include "arch/x86_64.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* The CPU refuses longer ones. */
enum { LONGEST = 15 };

static bool has_modrm_1(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x63 || op == 0x69 || op == 0x6b || (op & 0xf0) == 0x80 || op == 0xc0 ||
	       op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op & 0xf8) == 0xd8 || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static bool has_modrm_0f(uint8_t op)
{
	return !((op >= 0x04 && op <= 0x0c) || op == 0x0e || (op >= 0x30 && op <= 0x37) ||
		 op == 0x77 || (op & 0xf0) == 0x80 || (op >= 0xa0 && op <= 0xa2) ||
		 (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf));
}

/* A REX prefix counts only right before the opcode. Returns the index of what follows. */
static size_t prefixes(const uint8_t *b, size_t n, struct tl_shape *s)
{
	size_t i = 0;

	for (; i < n && i < LONGEST; i++) {
		switch (b[i]) {
		case 0x66:
			s->opsize = true;
			break;
		case 0x67:
			s->addrsize = true;
			break;
		case 0xf0:
			s->lock = true;
			break;
		case 0xf2:
			s->repne = true;
			break;
		case 0xf3:
			s->rep = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
			break;
		default:
			if ((b[i] & 0xf0) != 0x40)
				return i;
			s->rex = b[i];
			continue;
		}
		s->rex = 0;
	}
	return i;
}

/* C5, C4 (VEX), 62 (EVEX), 8F (XOP, unless it is pop): always so in 64-bit mode. Returns the
 * prefix's length, 0 when it is none. */
static size_t long_prefix(const uint8_t *p, size_t n, struct tl_shape *s)
{
	size_t length = 0;
	unsigned map = 1;

	if (p[0] == 0xc5) {
		length = 2;
	} else if (n > 1 && (p[0] == 0xc4 || p[0] == 0x62)) {
		length = p[0] == 0xc4 ? 3 : 4;
		map = p[1] & (p[0] == 0xc4 ? 0x1f : 0x07);
	} else if (n > 1 && p[0] == 0x8f && (p[1] & 0x1f) >= 8) {
		s->map = TL_MAP_XOP;
		return 3;
	} else {
		return 0;
	}
	s->vex = true;
	s->map = map == 1   ? TL_MAP_0F
		 : map == 2 ? TL_MAP_0F38
		 : map == 3 ? TL_MAP_0F3A
			    : TL_MAP_MORE;
	return length;
}

bool tl_x86_shape(const uint8_t *b, size_t n, struct tl_shape *out)
{
	struct tl_shape s = {0};
	size_t i = prefixes(b, n, &s), more;
	bool modrm;

	if (i >= n)
		return false;
	more = long_prefix(b + i, n - i, &s);
	i += more;
	if (!more && b[i] == 0x0f) {
		s.map = TL_MAP_0F;
		if (i + 1 < n && (b[i + 1] == 0x38 || b[i + 1] == 0x3a)) {
			s.map = b[++i] == 0x38 ? TL_MAP_0F38 : TL_MAP_0F3A;
		}
		i++;
	}
	if (i >= n || i >= LONGEST)
		return false;
	s.op_at = (uint8_t)i;
	s.op = b[i];
	if (s.map == TL_MAP_1)
		modrm = has_modrm_1(s.op);
	else if (s.map == TL_MAP_0F)
		modrm = s.vex ? s.op != 0x77 : has_modrm_0f(s.op); /* 77: vzeroupper */
	else
		modrm = true;
	if (modrm) {
		if (++i >= n || i >= LONGEST)
			return false;
		s.modrm_at = (uint8_t)i;
		s.modrm = b[i];
	}
	*out = s;
	return true;
}

size_t tl_x86_modrm_length(const uint8_t *b, size_t n, const struct tl_shape *s)
{
	unsigned mod = s->modrm >> 6, rm = s->modrm & 7;
	size_t length = 1;

	if (!s->modrm_at)
		return 0;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (s->modrm_at + 1u >= n)
			return 0;
		if (mod == 0 && (b[s->modrm_at + 1] & 7) == 5)
			length += 4;
		length++;
	}
	if (mod == 1)
		length += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		length += 4;
	return s->modrm_at + length <= n ? length : 0;
}

static void direct(const uint8_t *b, size_t n, const struct tl_shape *s, tl_vaddr at, size_t from,
		   size_t size, enum tl_flow flow, struct tl_insn *out)
{
	int32_t wide;
	int8_t narrow;

	/* With 66 and no REX.W some CPUs (AMD) cut the pc to 16 bits and others (Intel) ignore
	 * the prefix: no compiler emits it. */
	if (from + size > n || (s->opsize && !(s->rex & 8)))
		return;
	out->flow = flow;
	out->length = (uint8_t)(from + size);
	out->target.u = at.u + out->length;
	if (size == 4) {
		memcpy(&wide, b + from, 4);
		out->target.u += (uint64_t)(int64_t)wide;
	} else {
		memcpy(&narrow, b + from, 1);
		out->target.u += (uint64_t)(int64_t)narrow;
	}
}

static void fixed(enum tl_flow flow, size_t length, struct tl_insn *out)
{
	out->flow = flow;
	out->length = (uint8_t)length;
}

static void group_ff(const uint8_t *b, size_t n, const struct tl_shape *s, struct tl_insn *out)
{
	unsigned which = s->modrm >> 3 & 7;
	size_t operand = tl_x86_modrm_length(b, n, s);

	if (which < 2 || which > 5 || !operand || (s->opsize && !(s->rex & 8)))
		return;
	fixed(which < 4 ? TL_FLOW_CALL_INDIRECT : TL_FLOW_JUMP_INDIRECT, s->modrm_at + operand, out);
}

/* Whatever changes the flow of control, and the filling between functions, is taken apart here:
 * cheaper than Capstone and independent of what it knows. A length of 0 leaves it to others. */
static void flow_1(const uint8_t *b, size_t n, const struct tl_shape *s, tl_vaddr at,
		   struct tl_insn *out)
{
	size_t end = s->op_at + 1u;

	switch (s->op) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3: /* loopne loope loop jrcxz */
		direct(b, n, s, at, end, 1, TL_FLOW_BRANCH, out);
		break;
	case 0xeb:
		direct(b, n, s, at, end, 1, TL_FLOW_JUMP, out);
		break;
	case 0xe9:
		direct(b, n, s, at, end, 4, TL_FLOW_JUMP, out);
		break;
	case 0xe8:
		direct(b, n, s, at, end, 4, TL_FLOW_CALL, out);
		break;
	case 0xc2: /* ret n */
	case 0xca: /* far ret n */
		fixed(TL_FLOW_RETURN, end + 2, out);
		break;
	case 0xc3: /* ret */
	case 0xcb: /* far ret */
	case 0xcf: /* iret */
		fixed(TL_FLOW_RETURN, end, out);
		break;
	case 0xcc: /* int3 */
	case 0xf1: /* int1 */
	case 0xf4: /* hlt */
		fixed(TL_FLOW_STOP, end, out);
		break;
	case 0xcd: /* int n */
		fixed(TL_FLOW_NEXT, end + 1, out);
		out->is_syscall = end < n && b[end] == 0x80;
		break;
	case 0x90:
		fixed(TL_FLOW_NEXT, end, out);
		break;
	case 0xc7: /* xbegin */
		if (s->modrm == 0xf8)
			direct(b, n, s, at, end + 1, 4, TL_FLOW_BRANCH, out);
		break;
	case 0xff:
		group_ff(b, n, s, out);
		break;
	}
}

static void flow_0f(const uint8_t *b, size_t n, const struct tl_shape *s, tl_vaddr at,
		    struct tl_insn *out)
{
	size_t end = s->op_at + 1u, operand = tl_x86_modrm_length(b, n, s);

	switch (s->op) {
	case 0x05: /* syscall */
		fixed(TL_FLOW_NEXT, end, out);
		out->is_syscall = true;
		break;
	case 0x0b: /* ud2 */
	case 0x34: /* sysenter: comes back elsewhere */
		fixed(TL_FLOW_STOP, end, out);
		break;
	case 0xb9: /* ud1 */
	case 0xff: /* ud0 */
		if (operand)
			fixed(TL_FLOW_STOP, s->modrm_at + operand, out);
		break;
	case 0x80 ... 0x8f:
		direct(b, n, s, at, end, 4, TL_FLOW_BRANCH, out);
		break;
	case 0x1e: /* endbr64, rdssp */
	case 0x1f: /* nop */
		if (operand)
			fixed(TL_FLOW_NEXT, s->modrm_at + operand, out);
		break;
	}
}

/* Length of an instruction that Capstone does not know, where the encoding alone tells it: it
 * lacks a third of AVX-512 (1,350 instructions of libc) and what came after. 0: cannot be told. */
static size_t length_by_rule(const uint8_t *b, size_t n, const struct tl_shape *s)
{
	size_t operand = tl_x86_modrm_length(b, n, s), imm = 0;

	if (!operand || (s->vex && (s->rex || s->opsize || s->rep || s->repne || s->lock)))
		return 0;
	switch (s->map) {
	case TL_MAP_0F:
		if (s->vex)
			imm = (s->op >= 0x70 && s->op <= 0x73) || s->op == 0xc2 ||
			      (s->op >= 0xc4 && s->op <= 0xc6);
		else if (s->op != 0x01 && s->op != 0xae && s->op != 0xc7)
			return 0;
		break;
	case TL_MAP_0F38:
		break;
	case TL_MAP_0F3A:
		imm = 1;
		break;
	default:
		return 0;
	}
	return s->modrm_at + operand + imm;
}

static size_t length_by_capstone(const uint8_t *b, size_t n)
{
	struct tl_capstone *d = tl_x86_capstone(false);
	size_t left = n < LONGEST ? n : LONGEST;
	uint64_t address = 0;

	return d && cs_disasm_iter(d->handle, &b, &left, &address, d->insn) ? d->insn->size : 0;
}

/* pause is one: it only waits. */
bool tl_x86_is_nop(const struct tl_shape *s)
{
	if (s->lock || s->vex)
		return false;
	if (s->map == TL_MAP_1)
		return s->op == 0x90 && !(s->rex & 1); /* with REX.B it is xchg %r8,%rax */
	if (s->map != TL_MAP_0F)
		return false;
	/* 0F 1E: endbr64 and endbr32 alone; rdssp among them reads the shadow stack. */
	return s->op == 0x1f ||
	       (s->op == 0x1e && s->rep && (s->modrm == 0xfa || s->modrm == 0xfb));
}

/* push, pop; add, sub, and of %rsp. */
static bool moves_sp(const struct tl_shape *s)
{
	if (s->map != TL_MAP_1 || s->vex)
		return false;
	if (s->op >= 0x50 && s->op <= 0x5f)
		return true;
	return (s->op == 0x81 || s->op == 0x83) && (s->modrm & 0xc7) == 0xc4 && !(s->rex & 1);
}

int tl_x86_decode(const uint8_t *b, size_t n, tl_vaddr at, struct tl_insn *out)
{
	struct tl_shape s;

	*out = (struct tl_insn){.flow = TL_FLOW_NEXT};
	if (!tl_x86_shape(b, n, &s))
		return -EILSEQ;
	if (s.map == TL_MAP_1)
		flow_1(b, n, &s, at, out);
	else if (s.map == TL_MAP_0F && !s.vex)
		flow_0f(b, n, &s, at, out);
	out->is_nop = tl_x86_is_nop(&s);
	out->moves_sp = moves_sp(&s);
	if (!out->length)
		out->length = (uint8_t)length_by_capstone(b, n);
	if (!out->length)
		out->length = (uint8_t)length_by_rule(b, n, &s);
	return out->length && out->length <= n && out->length <= LONGEST ? TL_OK : -EILSEQ;
}
