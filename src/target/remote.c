#include "target/remote.h"

#include <errno.h>
#include <signal.h>

#include "arch/arch.h"
#include "base/err.h"
#include "target/mem.h"
#include "target/ptrace.h"
#include "target/wait.h"

struct run {
	pid_t tid;
	tl_vaddr lo, hi; /* the stub */
	int deferred;	 /* a signal that cannot be blocked, met on the way */
};

/* Runs on until the stub's own system call is entered (WHICH: ENTRY) or left (EXIT). */
static int run_to(struct run *run, enum tl_syscall_stop which, int64_t *result)
{
	struct tl_syscall_info info;
	struct tl_stop stop;
	int r;

	for (int tries = 0; tries < 1000; tries++) {
		if ((r = tl_ptrace_syscall(run->tid, 0)) != TL_OK ||
		    (r = tl_wait_task(run->tid, &stop)) != TL_OK)
			return r;
		if (stop.kind == TL_STOP_ENDED || stop.kind == TL_STOP_EXIT)
			return TL_GONE;
		/* All signals are blocked; SIGSTOP cannot be. */
		if (stop.kind == TL_STOP_SIGNAL)
			run->deferred = stop.signal;
		if (stop.kind != TL_STOP_SYSCALL)
			continue;
		if ((r = tl_ptrace_syscall_info(run->tid, &info)) != TL_OK)
			return r;
		/* A task at its exec event first leaves execve. */
		if (info.stop == which && info.pc.u > run->lo.u && info.pc.u <= run->hi.u) {
			*result = info.result;
			return TL_OK;
		}
	}
	return tl_fail(-EIO, "task %d does not get through a system call of ours", run->tid);
}

int tl_remote_syscall(pid_t tid, int mem_fd, tl_vaddr stub, long number, const uint64_t args[6],
		      int64_t *result)
{
	const struct tl_arch *arch = tl_arch_native();
	uint8_t code[TL_STUB_SIZE], saved[TL_STUB_SIZE];
	tl_regs regs;
	uint64_t mask;
	size_t n;
	int r, r2;

	if ((r = tl_ptrace_get_regs(tid, &regs)) != TL_OK ||
	    (r = tl_ptrace_get_sigmask(tid, &mask)) != TL_OK)
		return r;
	n = arch->syscall_stub(stub, number, args, (tl_vaddr){arch->pc(&regs)}, code);
	if (tl_mem_read(mem_fd, stub, saved, n) != n)
		return tl_fail(-EFAULT, "no room for a system call in task %d", tid);
	struct run run = {tid, stub, {stub.u + n}, 0};

	if ((r = tl_mem_write(mem_fd, stub, code, n)) != TL_OK)
		return r;
	if ((r = tl_ptrace_set_sigmask(tid, ~0ull)) != TL_OK ||
	    (r = tl_ptrace_set_pc(tid, stub)) != TL_OK)
		goto out;
	if ((r = run_to(&run, TL_SYSCALL_ENTRY, result)) == TL_OK)
		r = run_to(&run, TL_SYSCALL_EXIT, result);
	/* The rest of the stub would restore exactly this; one SETREGS is cheaper than
	 * waiting for it, and until it is made the stub can still finish by itself. */
	if (r != TL_GONE && (r2 = tl_ptrace_set_regs(tid, &regs)) != TL_OK)
		r = r2;
out:
	if (r != TL_GONE) {
		tl_ptrace_set_sigmask(tid, mask);
		r2 = tl_mem_write(mem_fd, stub, saved, n);
		r = r != TL_OK ? r : r2;
	}
	if (run.deferred)
		kill(tid, run.deferred);
	return r;
}
