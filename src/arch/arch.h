/* arch/arch.h - everything of the CPU, one const table per CPU.
 *
 * No other folder has an #ifdef of a CPU. Functions on bytes are pure: they need
 * no process and are tested without one. */
#ifndef TL_ARCH_ARCH_H
#define TL_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "base/types.h"

typedef struct user_regs_struct tl_regs;

enum { TL_INSN_MAX = 16, TL_SLOT_SIZE = 64, TL_STUB_SIZE = 512 };

/* How control goes on after one instruction. */
enum tl_flow {
	TL_FLOW_NEXT,	       /* falls through */
	TL_FLOW_JUMP,	       /* direct, always; .target */
	TL_FLOW_BRANCH,	       /* direct, or falls through; .target */
	TL_FLOW_JUMP_INDIRECT, /* register or memory */
	TL_FLOW_CALL,	       /* direct; .target; comes back */
	TL_FLOW_CALL_INDIRECT,
	TL_FLOW_RETURN,
	TL_FLOW_STOP, /* ud2, hlt, int3: control does not go on */
};

struct tl_insn {
	uint8_t length;
	enum tl_flow flow;
	tl_vaddr target; /* of direct jumps, branches, calls */
	bool is_nop;	 /* does nothing: filling, endbr */
	bool moves_sp;	 /* pushes, pops, makes room on the stack (not: calls, returns) */
	bool is_syscall; /* the address after it can be seen by the kernel and signal handlers */
};

/* How to get past a site without lifting its byte. */
enum tl_step_kind {
	TL_STEP_FIXED,	/* the instruction changes the pc alone: go to .target (endbr, nop, jmp) */
	TL_STEP_BRANCH, /* as the flags say: .target or .next */
	TL_STEP_RETURN, /* any slot that holds a plain return will do: the shared one */
	TL_STEP_SLOT,	/* run .code, placed at the slot this was made for */
};

/* What a task inside a slot has done of the instruction, from .offset up to the next place's:
 * with .sp_add added to its stack pointer it is where the program would be at .pc. */
struct tl_place {
	uint8_t offset;
	int8_t sp_add; /* undoes the part of the instruction done so far */
	tl_vaddr pc;
};
enum { TL_PLACES_MAX = 4 };

struct tl_step {
	enum tl_step_kind kind;
	uint8_t condition; /* TL_STEP_BRANCH: arch's own code */
	uint8_t length;	   /* of .code, <= TL_SLOT_SIZE */
	tl_vaddr target, next;
	uint8_t code[TL_SLOT_SIZE];
	/* code[0..done_at) is the instruction not yet executed, the rest only goes on. A form
	 * of several instructions can be found half done: ask tl_step_place(). */
	uint8_t done_at;
	uint8_t n_places; /* sorted by offset, the first is {0, 0, at} */
	struct tl_place places[TL_PLACES_MAX];
};

/* For tasks found inside a slot (at detach, in an unwinder, as a signal handler's return
 * address): where the program would be with the pc at code offset OFFSET. */
struct tl_place tl_step_place(const struct tl_step *s, unsigned offset);

/* One instruction on a path of control flow. */
struct tl_path_insn {
	tl_vaddr at;
	uint8_t length;
	bool taken; /* a branch: whether the path takes it */
	uint8_t bytes[TL_INSN_MAX];
};

/* Where an indirect jump goes: entry i of ENTRIES, read at TABLE + i * SIZE, is an address
 * (SIZE 8) or a signed distance from BASE (SIZE 4). */
struct tl_jump_table {
	tl_vaddr table, base;
	uint64_t entries;
	uint8_t size;
};

struct tl_arch {
	const char *name;
	uint16_t elf_machine;
	const uint8_t *trap; /* the breakpoint instruction */
	unsigned trap_length;
	const uint8_t *plain_return; /* the shared slot */
	unsigned plain_return_length;
	/* A slot must lie within this distance of the code it was copied from. */
	int64_t slot_reach;
	/* Bytes below the stack pointer that code may use, and that unwinding reads: after an
	 * epilogue's pops the tables still name the places popped. */
	unsigned red_zone;

	uint64_t (*pc)(const tl_regs *);
	uint64_t (*sp)(const tl_regs *);
	void (*set_pc)(tl_regs *, uint64_t);
	void (*set_sp)(tl_regs *, uint64_t);
	size_t pc_offset; /* for PTRACE_POKEUSER */
	size_t (*gap_after_trap)(void); /* pc reported at a trap - address of the site */
	/* Whether the task was stopped inside a system call that would be restarted, so that
	 * moving its pc needs care: orig_rax >= 0 with one of the -ERESTART values. */
	bool (*in_syscall)(const tl_regs *);
	/* If the task was stopped as its system call returned EINTR: makes the registers call
	 * again, and tells so. */
	bool (*undo_eintr)(tl_regs *);
	/* System call number and arguments of a task stopped inside one. */
	void (*syscall_args)(const tl_regs *, long *number, uint64_t args[6]);
	int64_t (*syscall_result)(const tl_regs *);
	/* Arguments of the ABI's integer registers, at a function's first instruction; 0 for
	 * those that it has no register for. */
	uint64_t (*argument)(const tl_regs *, unsigned i);

	/* The register that DWARF gives number N, the pc's included; false: none we have. */
	bool (*dwarf_register)(const tl_regs *, unsigned n, uint64_t *out);

	/* Decodes one instruction at AT from N bytes. Negative errno (EILSEQ, no text) when it
	 * is not one or is not known. */
	int (*decode)(const uint8_t *bytes, size_t n, tl_vaddr at, struct tl_insn *out);
	/* Makes the way past the instruction at AT (its original bytes), for a slot at
	 * SLOT. -ENOTSUP with a text when it cannot be displaced, -ERANGE when the slot is too
	 * far for an operand relative to the pc. SLOT of {0}: only asks whether and how (kind
	 * is valid, code is not).
	 *
	 * A call pushes the address that it would have pushed in place, so that unwinders,
	 * exceptions and backtrace() keep working, and jumps. */
	int (*make_step)(const uint8_t *bytes, size_t n, tl_vaddr at, tl_vaddr slot,
			 struct tl_step *out);
	/* The same for a process with user shadow stacks, which only a real call keeps right:
	 * calls are made from the slot, and while they last their return address is the
	 * slot's, at offset .done_at. */
	int (*make_step_real_call)(const uint8_t *bytes, size_t n, tl_vaddr at, tl_vaddr slot,
				   struct tl_step *out);
	/* TL_STEP_FIXED and TL_STEP_BRANCH: where the pc goes. */
	tl_vaddr (*step_target)(const struct tl_step *, const tl_regs *);

	/* The table behind the indirect jump that ends PATH, whose instructions follow each
	 * other and can be reached through its first one only. false: not one that is known
	 * with certainty, its bound included. */
	bool (*jump_table)(const struct tl_path_insn *path, size_t n, struct tl_jump_table *out);

	/* Code that, jumped to from anywhere in user mode, saves every register it uses below
	 * the red zone, makes the system call, restores them all, and jumps to RESUME. It
	 * needs no tracer to finish. Placed at AT; returns its length, <= TL_STUB_SIZE. */
	size_t (*syscall_stub)(tl_vaddr at, long number, const uint64_t args[6], tl_vaddr resume,
			       uint8_t *out);
};

extern const struct tl_arch tl_arch_x86_64;
/* The CPU this was built for. */
const struct tl_arch *tl_arch_native(void);

#endif
