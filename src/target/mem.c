#include "target/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

int tl_mem_open(pid_t tid, int *fd)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/%d/mem", tid);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd >= 0)
		return TL_OK;
	if (errno == ENOENT || errno == ESRCH)
		return TL_GONE;
	return tl_fail(-errno, "%s cannot be opened: %s", path, strerror(errno));
}

size_t tl_mem_read(int fd, tl_vaddr at, void *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, (char *)buf + got, n - got, at.u + got);

		if (r <= 0)
			break;
		got += r;
	}
	return got;
}

int tl_mem_write(int fd, tl_vaddr at, const void *buf, size_t n)
{
	ssize_t w = pwrite(fd, buf, n, at.u);

	if (w == (ssize_t)n)
		return TL_OK;
	/* No users of the space are left: the write returns 0. */
	if (w == 0)
		return TL_GONE;
	return tl_fail(w < 0 ? -errno : -EIO, "writing %zu bytes of code at %#llx failed: %s", n,
		       (unsigned long long)at.u, strerror(w < 0 ? errno : EIO));
}
