#include "target/ptrace.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/err.h"

/* ESRCH means dead or not stopped; a stopped tracee leaves that state behind our back
 * only by SIGKILL, so both are TL_GONE. */
static int call(const char *name, enum __ptrace_request req, pid_t tid, void *addr, void *data)
{
	if (ptrace(req, tid, addr, data) >= 0)
		return TL_OK;
	if (errno == ESRCH)
		return TL_GONE;
	return tl_fail(-errno, "ptrace %s of task %d failed: %s", name, tid, strerror(errno));
}

static void *word(uint64_t v)
{
	return (void *)(uintptr_t)v;
}

int tl_ptrace_seize(pid_t tid, bool kill_with_us)
{
	uint64_t options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD;

	if (kill_with_us)
		options |= PTRACE_O_EXITKILL;
	return call("seize", PTRACE_SEIZE, tid, NULL, word(options));
}

int tl_ptrace_interrupt(pid_t tid)
{
	return call("interrupt", PTRACE_INTERRUPT, tid, NULL, NULL);
}

int tl_ptrace_cont(pid_t tid, int signal)
{
	return call("cont", PTRACE_CONT, tid, NULL, word(signal));
}

int tl_ptrace_syscall(pid_t tid, int signal)
{
	return call("syscall", PTRACE_SYSCALL, tid, NULL, word(signal));
}

int tl_ptrace_listen(pid_t tid)
{
	return call("listen", PTRACE_LISTEN, tid, NULL, NULL);
}

int tl_ptrace_detach(pid_t tid, int signal)
{
	return call("detach", PTRACE_DETACH, tid, NULL, word(signal));
}

int tl_ptrace_get_regs(pid_t tid, tl_regs *out)
{
	return call("getregs", PTRACE_GETREGS, tid, NULL, out);
}

int tl_ptrace_set_regs(pid_t tid, const tl_regs *regs)
{
	return call("setregs", PTRACE_SETREGS, tid, NULL, (void *)regs);
}

int tl_ptrace_set_pc(pid_t tid, tl_vaddr pc)
{
	return call("pokeuser", PTRACE_POKEUSER, tid, word(tl_arch_native()->pc_offset), word(pc.u));
}

int tl_ptrace_peek(pid_t tid, tl_vaddr at, uint64_t *out)
{
	long v;

	errno = 0;
	v = ptrace(PTRACE_PEEKDATA, tid, word(at.u), NULL);
	if (errno == ESRCH)
		return TL_GONE;
	if (errno)
		return tl_fail(-errno, "reading task %d's memory at %#llx failed: %s", tid,
			       (unsigned long long)at.u, strerror(errno));
	*out = v;
	return TL_OK;
}

int tl_ptrace_event_message(pid_t tid, unsigned long *out)
{
	return call("geteventmsg", PTRACE_GETEVENTMSG, tid, NULL, out);
}

int tl_ptrace_get_sigmask(pid_t tid, uint64_t *out)
{
	return call("getsigmask", PTRACE_GETSIGMASK, tid, word(sizeof *out), out);
}

int tl_ptrace_set_sigmask(pid_t tid, uint64_t mask)
{
	return call("setsigmask", PTRACE_SETSIGMASK, tid, word(sizeof mask), &mask);
}

int tl_ptrace_syscall_info(pid_t tid, struct tl_syscall_info *out)
{
	struct __ptrace_syscall_info info;
	int r = call("get_syscall_info", PTRACE_GET_SYSCALL_INFO, tid, word(sizeof info), &info);

	if (r != TL_OK)
		return r;
	*out = (struct tl_syscall_info){.pc = {info.instruction_pointer}};
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		out->stop = TL_SYSCALL_ENTRY;
	if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		out->stop = TL_SYSCALL_EXIT;
		out->result = info.exit.rval;
	}
	return TL_OK;
}
