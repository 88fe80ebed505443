#include <errno.h>
#include "arch/x86_64.h"

#include <elf.h>
#include <string.h>

static uint64_t pc(const tl_regs *r)
{
	return r->rip;
}

static void set_pc(tl_regs *r, uint64_t to)
{
	r->rip = to;
}

static void set_sp(tl_regs *r, uint64_t to)
{
	r->rsp = to;
}

/* -EINTR in rax with a system call's number in orig_rax: `syscall' is two bytes long. */
static bool undo_eintr(tl_regs *r)
{
	if ((int64_t)r->orig_rax < 0 || (int64_t)r->rax != -EINTR)
		return false;
	r->rax = r->orig_rax;
	r->rip -= 2;
	return true;
}

static uint64_t sp(const tl_regs *r)
{
	return r->rsp;
}

/* int3 is reported as a trap: the pc is behind it. */
static size_t gap_after_trap(void)
{
	return 1;
}

/* The kernel's own codes (include/linux/errno.h), seen in a result register at a stop only:
 * when the task goes on, the kernel steps the pc back over the system call or turns them into
 * EINTR, as orig_rax still holds the number. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

static bool in_syscall(const tl_regs *r)
{
	if ((int64_t)r->orig_rax < 0)
		return false;
	switch (-(int64_t)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

static void syscall_args(const tl_regs *r, long *number, uint64_t args[6])
{
	*number = (long)r->orig_rax;
	args[0] = r->rdi;
	args[1] = r->rsi;
	args[2] = r->rdx;
	args[3] = r->r10;
	args[4] = r->r8;
	args[5] = r->r9;
}

static int64_t syscall_result(const tl_regs *r)
{
	return (int64_t)r->rax;
}

static uint64_t argument(const tl_regs *r, unsigned i)
{
	switch (i) {
	case 0:
		return r->rdi;
	case 1:
		return r->rsi;
	case 2:
		return r->rdx;
	case 3:
		return r->rcx;
	case 4:
		return r->r8;
	case 5:
		return r->r9;
	}
	return 0;
}

/* System V ABI AMD64, figure 3.36. */
static bool dwarf_register(const tl_regs *r, unsigned n, uint64_t *out)
{
	const uint64_t all[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
				r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};

	if (n >= sizeof all / sizeof *all)
		return false;
	*out = all[n];
	return true;
}

/* The low bit of a condition code negates it (Intel SDM vol. 1, appendix B). */
static bool holds(uint8_t condition, uint64_t flags)
{
	bool cf = flags & 0x1, pf = flags & 0x4, zf = flags & 0x40, sf = flags & 0x80,
	     of = flags & 0x800;
	bool yes = false;

	switch (condition >> 1) {
	case 0:
		yes = of;
		break;
	case 1:
		yes = cf;
		break;
	case 2:
		yes = zf;
		break;
	case 3:
		yes = cf || zf;
		break;
	case 4:
		yes = sf;
		break;
	case 5:
		yes = pf;
		break;
	case 6:
		yes = sf != of;
		break;
	case 7:
		yes = zf || sf != of;
		break;
	}
	return yes != (condition & 1);
}

static tl_vaddr step_target(const struct tl_step *s, const tl_regs *r)
{
	if (s->kind == TL_STEP_BRANCH && !holds(s->condition, r->eflags))
		return s->next;
	return s->target;
}

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

/* The kernel itself changes rax, rcx and r11; the others are ours. lea moves the stack pointer
 * without touching the flags, past the 128 bytes that a leaf function may use below it. */
static size_t syscall_stub(tl_vaddr at, long number, const uint64_t args[6], tl_vaddr resume,
			   uint8_t *out)
{
	static const uint8_t save[] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,		/* lea -128(%rsp),%rsp */
		0x9c,					/* pushfq */
		0x50, 0x51, 0x52, 0x56, 0x57,		/* push rax rcx rdx rsi rdi */
		0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, /* r8 r9 r10 r11 */
	};
	static const uint8_t load[6][2] = {
		{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, /* movabs rdi rsi rdx */
		{0x49, 0xba}, {0x49, 0xb8}, {0x49, 0xb9}, /* r10 r8 r9 */
	};
	static const uint8_t restore[] = {
		0x0f, 0x05, /* syscall */
		0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, 0x5f, 0x5e, 0x5a, 0x59, 0x58,
		0x9d,						/* popfq */
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, /* lea 128(%rsp),%rsp */
		0xff, 0x25, 0x00, 0x00, 0x00, 0x00,		/* jmp *0(%rip) */
	};
	uint64_t nr = (uint64_t)number;
	uint8_t *p = put(out, save, sizeof save);

	(void)at; /* nothing in it is relative to the pc but its own end */
	for (int i = 0; i < 6; i++) {
		p = put(p, load[i], 2);
		p = put(p, &args[i], 8);
	}
	p = put(p, (const uint8_t[]){0x48, 0xb8}, 2);
	p = put(p, &nr, 8);
	p = put(p, restore, sizeof restore);
	p = put(p, &resume.u, 8);
	return (size_t)(p - out);
}

const struct tl_arch tl_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.trap = (const uint8_t[]){0xcc},
	.trap_length = 1,
	.plain_return = (const uint8_t[]){0xc3},
	.plain_return_length = 1,
	/* A rel32 reaches 2 GiB; the margin lets an operand of the displaced instruction lie
	 * a module's length to the other side. */
	.slot_reach = INT64_C(0x70000000),
	.red_zone = 128,
	.pc = pc,
	.sp = sp,
	.set_pc = set_pc,
	.set_sp = set_sp,
	.undo_eintr = undo_eintr,
	.pc_offset = offsetof(struct user, regs.rip),
	.gap_after_trap = gap_after_trap,
	.in_syscall = in_syscall,
	.syscall_args = syscall_args,
	.syscall_result = syscall_result,
	.argument = argument,
	.dwarf_register = dwarf_register,
	.decode = tl_x86_decode,
	.make_step = tl_x86_make_step,
	.make_step_real_call = tl_x86_make_step_real_call,
	.step_target = step_target,
	.jump_table = tl_x86_jump_table,
	.syscall_stub = syscall_stub,
};
