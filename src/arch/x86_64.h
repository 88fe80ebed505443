/* arch/x86_64.h - between the files of this CPU; nobody else includes it. */
#ifndef TL_ARCH_X86_64_H
#define TL_ARCH_X86_64_H

#include "arch/arch.h"

/* An instruction taken apart as far as displacing it needs: its prefixes, opcode and operand
 * byte. Knows every encoding (legacy, VEX, EVEX, XOP), not every instruction. */
struct tl_shape {
	enum {
		TL_MAP_1,    /* one-byte opcodes */
		TL_MAP_0F,
		TL_MAP_0F38,
		TL_MAP_0F3A,
		TL_MAP_XOP,
		TL_MAP_MORE, /* of VEX and EVEX, beyond 0F3A */
	} map;
	bool vex;	/* VEX or EVEX */
	bool opsize;	/* 66 */
	bool addrsize;	/* 67 */
	bool rep;	/* F3 */
	bool repne;	/* F2 */
	bool lock;	/* F0 */
	uint8_t rex;	/* 0: none */
	uint8_t op_at, op;
	uint8_t modrm_at; /* 0: has none */
	uint8_t modrm;
};

/* Capstone, opened at a thread's first use and closed at its end. DETAIL: with operands, at
 * double the cost. NULL: it cannot be opened. */
struct tl_capstone {
	size_t handle;	      /* csh */
	struct cs_insn *insn; /* reused by each decode */
};
struct tl_capstone *tl_x86_capstone(bool detail);

/* false: cut off. */
bool tl_x86_shape(const uint8_t *b, size_t n, struct tl_shape *out);
/* Bytes of the operand byte, SIB and displacement; 0 when cut off or there are none. */
size_t tl_x86_modrm_length(const uint8_t *b, size_t n, const struct tl_shape *s);
/* Changes nothing but the pc. */
bool tl_x86_is_nop(const struct tl_shape *s);

int tl_x86_decode(const uint8_t *b, size_t n, tl_vaddr at, struct tl_insn *out);
int tl_x86_make_step(const uint8_t *b, size_t n, tl_vaddr at, tl_vaddr slot, struct tl_step *out);
int tl_x86_make_step_real_call(const uint8_t *b, size_t n, tl_vaddr at, tl_vaddr slot,
			       struct tl_step *out);
bool tl_x86_jump_table(const struct tl_path_insn *path, size_t n, struct tl_jump_table *out);

#endif
