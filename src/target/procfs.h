/* target/procfs.h - what /proc tells about a task, without stopping it. */
#ifndef TL_TARGET_PROCFS_H
#define TL_TARGET_PROCFS_H

#include <sys/types.h>

#include "base/types.h"

struct tl_mapping {
	tl_vaddr lo, hi;
	bool readable, writable, executable, shared;
	uint64_t offset;
	dev_t dev;
	ino_t inode;
	const char *path; /* "" when anonymous; "[stack]", "[vdso]", ...; " (deleted)" cut off */
	bool deleted;
};
struct tl_maps {
	struct tl_mapping *at; /* sorted */
	size_t n;
	char *text; /* what the paths point into */
};
/* TL_GONE when the process vanished or its leader is a zombie without a map: ask for a
 * living task's instead (cases A5). */
int tl_maps_read(pid_t tid, struct tl_maps *out);
void tl_maps_fini(struct tl_maps *m);

enum { TL_COMM_MAX = 64 };
struct tl_proc_status {
	pid_t tgid, ppid, tracer;
	char state; /* R S D T t Z X I */
	char comm[TL_COMM_MAX];
	uid_t uid, euid;
	unsigned seccomp; /* 0 none, 1 strict, 2 filter */
	uint64_t sig_pending; /* of this task alone */
	uint64_t sig_blocked, sig_ignored, sig_caught;
	unsigned threads;
};
int tl_proc_status(pid_t tid, struct tl_proc_status *out);

/* Thread ids of a process. TL_GONE when it vanished. *OUT is owned by the caller. */
int tl_proc_tasks(pid_t pid, pid_t **out, size_t *n);
/* Target of /proc/PID/exe, "" when it cannot be read (a kernel thread, no permission). */
int tl_proc_exe(pid_t tid, char *buf, size_t n);
/* Where a task sleeps in a system call, without stopping it (/proc/TID/syscall). -EAGAIN (no
 * text): it runs. */
int tl_proc_sleeper_pc(pid_t tid, tl_vaddr *pc);

#endif
