/* target/ptrace.h - every ptrace(2) call there is.
 *
 * All of them return TL_OK, TL_GONE (the task is dead, or no longer stopped because it
 * is dying: its exit will be reported by the wait) or a negative errno with a text. */
#ifndef TL_TARGET_PTRACE_H
#define TL_TARGET_PTRACE_H

#include <sys/types.h>

#include "arch/arch.h"

/* Everything that makes new tasks, and the last look at a dying one. KILL_WITH_US: the
 * kernel kills the target when we die (launched targets only). */
int tl_ptrace_seize(pid_t tid, bool kill_with_us);
int tl_ptrace_interrupt(pid_t tid);
int tl_ptrace_cont(pid_t tid, int signal);
/* Runs on to the next system call entry or exit. */
int tl_ptrace_syscall(pid_t tid, int signal);
/* Stays stopped as job control wants, but reports SIGCONT. */
int tl_ptrace_listen(pid_t tid);
int tl_ptrace_detach(pid_t tid, int signal);
int tl_ptrace_get_regs(pid_t tid, tl_regs *out);
int tl_ptrace_set_regs(pid_t tid, const tl_regs *regs);
int tl_ptrace_set_pc(pid_t tid, tl_vaddr pc);
int tl_ptrace_peek(pid_t tid, tl_vaddr at, uint64_t *out);
/* New task's id (clone, fork, vfork), former id (exec), exit status (exit). */
int tl_ptrace_event_message(pid_t tid, unsigned long *out);
int tl_ptrace_get_sigmask(pid_t tid, uint64_t *out);
int tl_ptrace_set_sigmask(pid_t tid, uint64_t mask);

enum tl_syscall_stop { TL_SYSCALL_NONE, TL_SYSCALL_ENTRY, TL_SYSCALL_EXIT };
struct tl_syscall_info {
	enum tl_syscall_stop stop;
	tl_vaddr pc;
	int64_t result; /* at TL_SYSCALL_EXIT */
};
int tl_ptrace_syscall_info(pid_t tid, struct tl_syscall_info *out);

#endif
