#include "unwind/unwind.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child of fork has this process's layout, so that this process's memory stands for
 * the files. It says by backtrace() where it is and then traps. */

enum { MAX = 4096, DEEP = 600, STACK = 1 << 20 };

struct truth {
	int n;
	void *pc[MAX];
};

static struct truth *truth; /* shared with the child */

static void __attribute__((noinline)) tell(void)
{
	truth->n = backtrace(truth->pc, MAX);
	__asm__ volatile("int3");
}

static int __attribute__((noinline)) deep(int n, volatile char *outer)
{
	volatile char room[64] = {(char)n};

	if (n == 0)
		tell();
	else
		deep(n - 1, room);
	return room[0] + outer[0];
}

static void in_recursion(void)
{
	volatile char room[1] = {0};

	deep(DEEP, room);
	__asm__ volatile("");
}

static int compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	tell();
	_exit(0);
}

static void in_qsort(void)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof *numbers, compare);
	__asm__ volatile("");
}

static void handler(int sig)
{
	(void)sig;
	tell();
	__asm__ volatile("");
}

static void in_handler(void)
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	__asm__ volatile("");
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void in_library_calls(void)
{
	int numbers[] = {3, 1, 2, 7, 5};
	char text[64];

	tell();
	qsort(numbers, 5, sizeof *numbers, by_value);
	snprintf(text, sizeof text, "%s %5.3f %x", "text", 2.5, numbers[0]);
	free(strdup(text));
	__asm__ volatile("int3");
}

/* The source: this process itself. */

struct asked {
	uint64_t pc, read_end;
	struct tl_unwind_module *m;
	bool found;
};

static int match(struct dl_phdr_info *info, size_t size, void *data)
{
	struct asked *a = data;
	struct tl_unwind_module m = {.bias = info->dlpi_addr, .key = info->dlpi_phdr};
	bool here = false;

	(void)size;
	m.lo.u = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t lo = info->dlpi_addr + p->p_vaddr, hi = lo + p->p_memsz;

		if (p->p_type == PT_GNU_EH_FRAME) {
			m.eh_frame_hdr.u = p->p_vaddr;
			m.eh_frame_hdr_size = p->p_memsz;
		}
		if (p->p_type != PT_LOAD)
			continue;
		m.lo.u = lo < m.lo.u ? lo : m.lo.u;
		m.hi.u = hi > m.hi.u ? hi : m.hi.u;
		if (a->pc >= lo && a->pc < hi && (p->p_flags & PF_R)) {
			here = true;
			a->read_end = hi;
		}
	}
	if (here && a->m)
		*a->m = m;
	return a->found = here;
}

static bool module_at(void *ctx, tl_vaddr pc, struct tl_unwind_module *out)
{
	struct asked a = {.pc = pc.u, .m = out};

	(void)ctx;
	dl_iterate_phdr(match, &a);
	return a.found;
}

static size_t read_module(void *ctx, tl_vaddr at, void *buf, size_t n)
{
	struct asked a = {.pc = at.u};

	(void)ctx;
	dl_iterate_phdr(match, &a);
	if (!a.found)
		return 0;
	if (n > a.read_end - at.u)
		n = a.read_end - at.u;
	memcpy(buf, (const void *)(uintptr_t)at.u, n);
	return n;
}

static const struct tl_unwind_source source = {NULL, module_at, read_module};

/* The child. */

static pid_t start(void (*f)(void))
{
	pid_t pid;
	int status;

	truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(truth, MAP_FAILED);
	backtrace(truth->pc, 1); /* loads libgcc_s here, so that the child's layout is the same */
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		f();
		_exit(1);
	}
	do
		cr_assert_eq(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGTRAP &&
	       ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status)) == 0);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void take(pid_t pid, struct tl_stack_copy *copy, size_t most)
{
	static uint8_t bytes[STACK];
	size_t n = most < STACK ? most : STACK;
	ssize_t got = 0;

	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &copy->regs), 0);
	copy->base.u = copy->regs.rsp - tl_arch_native()->red_zone;
	copy->bytes = bytes;
	/* The last page before the stack's end cuts the read short. */
	for (size_t page = 4096, at = 0; at < n; at += (size_t)got, page = 4096) {
		size_t piece = page - ((copy->base.u + at) & (page - 1));
		struct iovec to = {bytes + at, piece < n - at ? piece : n - at};
		struct iovec from = {(void *)(uintptr_t)(copy->base.u + at), to.iov_len};

		got = process_vm_readv(pid, &to, 1, &from, 1, 0);
		if (got <= 0)
			break;
		copy->n = at + (size_t)got;
	}
}

static size_t unwind(struct tl_unwinder *u, pid_t pid, size_t most, struct tl_unwound *out,
		     bool *complete)
{
	struct tl_stack_copy copy = {0};

	take(pid, &copy, most);
	return tl_unwind(u, &copy, out, MAX, complete);
}

static void check_against_backtrace(void (*f)(void), int at_least, int trampolines)
{
	static struct tl_unwound frames[MAX];
	struct tl_unwinder *u = tl_unwinder_new(&source);
	pid_t pid = start(f);
	bool complete;
	size_t n = unwind(u, pid, STACK, frames, &complete);

	cr_expect(complete);
	cr_expect_eq((int)n, truth->n, "%zu frames, backtrace() has %d", n, truth->n);
	cr_expect_geq((int)n, at_least);
	for (size_t i = 1; i < n && i < (size_t)truth->n; i++) {
		cr_expect_eq(frames[i].pc.u, (uint64_t)(uintptr_t)truth->pc[i], "frame %zu", i);
		cr_expect_eq(frames[i - 1].cfa.u, frames[i].sp.u);
		cr_expect_gt(frames[i].sp.u, frames[i - 1].sp.u);
		trampolines -= frames[i].is_trampoline;
		cr_expect_eq(frames[i].in_signal,
			     frames[i].is_trampoline || frames[i - 1].is_trampoline);
	}
	cr_expect_eq(trampolines, 0);
	cr_expect(frames[0].in_signal);
	end(pid);
	tl_unwinder_free(u);
}

Test(unwind, a_deep_recursion_without_frame_pointers)
{
	check_against_backtrace(in_recursion, DEEP, 0);
}

Test(unwind, a_callback_from_libc)
{
	check_against_backtrace(in_qsort, 5, 0);
}

Test(unwind, a_signal_handler_and_what_it_interrupted)
{
	check_against_backtrace(in_handler, 6, 1);
}

Test(unwind, a_short_copy_gives_the_inner_frames_and_says_so)
{
	static struct tl_unwound frames[MAX];
	struct tl_unwinder *u = tl_unwinder_new(&source);
	pid_t pid = start(in_recursion);
	bool complete;
	size_t n = unwind(u, pid, 8192, frames, &complete);

	cr_expect(!complete);
	cr_expect_gt(n, 20u);
	cr_expect_lt(n, (size_t)DEEP);
	for (size_t i = 1; i < n; i++)
		cr_expect_eq(frames[i].pc.u, (uint64_t)(uintptr_t)truth->pc[i]);
	end(pid);
	tl_unwinder_free(u);
}

Test(unwind, fewer_frames_than_there_are_is_not_complete)
{
	struct tl_unwound frames[3];
	struct tl_unwinder *u = tl_unwinder_new(&source);
	struct tl_stack_copy copy = {0};
	pid_t pid = start(in_qsort);
	bool complete = true;

	take(pid, &copy, STACK);
	cr_expect_eq(tl_unwind(u, &copy, frames, 3, &complete), 3u);
	cr_expect(!complete);
	end(pid);
	tl_unwinder_free(u);
}

static bool nowhere(void *ctx, tl_vaddr pc, struct tl_unwind_module *out)
{
	(void)ctx;
	(void)pc;
	(void)out;
	return false;
}

Test(unwind, code_without_tables_ends_it_without_a_guess)
{
	static struct tl_unwound frames[MAX];
	struct tl_unwind_source none = {NULL, nowhere, read_module};
	struct tl_unwinder *u = tl_unwinder_new(&none);
	pid_t pid = start(in_qsort);
	bool complete = true;

	cr_expect_eq(unwind(u, pid, STACK, frames, &complete), 1u);
	cr_expect(!complete);
	end(pid);
	tl_unwinder_free(u);
}

/* Every instruction: prologues, epilogues, PLT entries, functions of libc. The frames from
 * the caller of in_library_calls() outwards stay what they are. */
Test(unwind, at_every_instruction_of_library_calls)
{
	static struct tl_unwound frames[MAX];
	struct tl_unwinder *u = tl_unwinder_new(&source);
	pid_t pid = start(in_library_calls);
	size_t steps = 0, bad = 0, outer = (size_t)truth->n - 2;
	int status;
	bool complete;
	struct user_regs_struct regs;

	/* First out of tell(), whose int3 has been passed. */
	for (; steps < 20000; steps++) {
		size_t n;

		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		if (steps && *(const uint8_t *)(uintptr_t)regs.rip == 0xcc)
			break;
		n = unwind(u, pid, STACK, frames, &complete);
		bad += !complete || n < outer ||
		       memcmp(&frames[n - outer].pc, &truth->pc[2], sizeof(tl_vaddr)) != 0;
		if (bad == 1 && !complete)
			fprintf(stderr, "incomplete at 0x%llx, %zu frames\n", regs.rip, n);
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFSTOPPED(status));
	}
	fprintf(stderr, "%zu instructions, %zu stacks wrong or incomplete\n", steps, bad);
	cr_expect_gt(steps, 1000u);
	cr_expect_eq(bad, 0u);
	end(pid);
	tl_unwinder_free(u);
}

Test(unwind, a_cached_frame_costs_little)
{
	static struct tl_unwound frames[MAX];
	struct tl_unwinder *u = tl_unwinder_new(&source);
	struct tl_stack_copy copy = {0};
	struct timespec a, b;
	pid_t pid = start(in_recursion);
	size_t n = 0;
	bool complete;

	take(pid, &copy, STACK);
	tl_unwind(u, &copy, frames, MAX, &complete);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 100; i++)
		n += tl_unwind(u, &copy, frames, MAX, &complete);
	clock_gettime(CLOCK_MONOTONIC, &b);
	fprintf(stderr, "%.3f us a frame\n",
		((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3 /
			(double)n);
	end(pid);
	tl_unwinder_free(u);
}
