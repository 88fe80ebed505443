/* target/mem.h - a tracee's memory through /proc/PID/mem.
 *
 * Writes reach read-only text (the kernel makes a private copy of the page);
 * process_vm_writev does not. The descriptor stays with the address space it was
 * opened for: after exec it reads and writes the old one, which is gone. */
#ifndef TL_TARGET_MEM_H
#define TL_TARGET_MEM_H

#include <sys/types.h>

#include "base/types.h"

/* *FD is the caller's. TL_GONE, or a negative errno with a text. */
int tl_mem_open(pid_t tid, int *fd);
/* How many bytes could be read from AT on (0: none). */
size_t tl_mem_read(int fd, tl_vaddr at, void *buf, size_t n);
/* All or a failure. TL_GONE when the space has no more users. */
int tl_mem_write(int fd, tl_vaddr at, const void *buf, size_t n);

#endif
