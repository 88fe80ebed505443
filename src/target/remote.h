/* target/remote.h - one system call inside a tracee.
 *
 * The call runs from a stub that saves what it uses, calls, restores and jumps back
 * by itself: a tracer that dies in the middle leaves a program that goes on. The
 * borrowed-registers way survives that in 12 of 50 cases, this one in 50 of 50
 * (doc/PTRACE.md). */
#ifndef TL_TARGET_REMOTE_H
#define TL_TARGET_REMOTE_H

#include <sys/types.h>

#include "base/types.h"

/* TID is stopped in user mode, reaped, outside any system call; it is stopped at the same
 * place again afterwards. STUB: TL_STUB_SIZE executable bytes that nobody uses; they are
 * put back. TL_GONE when the task died; *RESULT is the kernel's (negative errno). */
int tl_remote_syscall(pid_t tid, int mem_fd, tl_vaddr stub, long number, const uint64_t args[6],
		      int64_t *result);

#endif
