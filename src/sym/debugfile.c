/* Separate debug files, by build id and by debug link, on this machine only: libdwfl's own
 * search would ask a debuginfod server when DEBUGINFOD_URLS is set. */
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sym/image_priv.h"

#define DEBUG_ROOT "/usr/lib/debug"

/* The sum that .gnu_debuglink carries (that of zlib), of a whole file. */
static uint32_t file_crc(int fd)
{
	uint32_t table[256], crc = 0xffffffff;
	unsigned char buf[65536];
	off_t at = 0;
	ssize_t n;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		table[i] = c;
	}
	for (; (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			crc = table[(crc ^ buf[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static bool same_build_id(const struct tl_image *img, Elf *elf, bool *known)
{
	const void *id = NULL;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);

	*known = n > 0 && img->build_id[0];
	if (!*known || strlen(img->build_id) != (size_t)n * 2)
		return false;
	for (ssize_t i = 0; i < n; i++) {
		char hex[3];

		snprintf(hex, sizeof hex, "%02x", ((const unsigned char *)id)[i]);
		if (memcmp(hex, img->build_id + i * 2, 2) != 0)
			return false;
	}
	return true;
}

/* Takes PATH.  A file that is not this image's is none. */
static Elf *try(const struct tl_image *img, char *path, const uint32_t *crc, int *fd)
{
	bool known = false, same;
	Elf *elf = tl_elf_open(path, fd);

	free(path);
	if (!elf)
		return NULL;
	same = same_build_id(img, elf, &known);
	if (!known)
		same = crc && file_crc(*fd) == *crc;
	if (same)
		return elf;
	tl_elf_close(elf, *fd);
	*fd = -1;
	return NULL;
}

static Elf *by_build_id(const struct tl_image *img, int *fd)
{
	if (strlen(img->build_id) < 4)
		return NULL;
	return try(
	    img,
	    tl_asprintf(DEBUG_ROOT "/.build-id/%.2s/%s.debug", img->build_id, img->build_id + 2),
	    NULL, fd);
}

/* Where gdb looks: beside the file, in .debug there, and under the debug root.  OPENED may
 * be a path through /proc/PID/root, behind which the file's neighbours are. */
static Elf *by_link(const struct tl_image *img, const char *link, uint32_t crc, int *fd)
{
	const char *const bases[] = {img->path, img->opened};
	Elf *elf = NULL;

	if (strchr(link, '/') || !*link)
		return NULL;
	for (size_t i = 0; i < 2 && !elf; i++) {
		const char *slash = strrchr(bases[i], '/');
		int n = slash ? (int)(slash - bases[i]) : 0;

		if (!slash || (i && !strcmp(bases[0], bases[1])))
			continue;
		elf = try(img, tl_asprintf("%.*s/%s", n, bases[i], link), &crc, fd);
		if (!elf)
			elf = try(img, tl_asprintf("%.*s/.debug/%s", n, bases[i], link), &crc, fd);
		if (!elf)
			elf = try(img, tl_asprintf(DEBUG_ROOT "%.*s/%s", n, bases[i], link), &crc,
				  fd);
	}
	return elf;
}

Elf *tl_debugfile_open(const struct tl_image *img, int *fd)
{
	Elf *elf = by_build_id(img, fd), *main_elf;
	const char *link;
	GElf_Word crc = 0;
	int main_fd;

	if (elf)
		return elf;
	main_elf = tl_image_elf(img, &main_fd);
	if (!main_elf)
		return NULL;
	link = dwelf_elf_gnu_debuglink(main_elf, &crc);
	if (link)
		elf = by_link(img, link, crc, fd);
	tl_elf_close(main_elf, main_fd);
	return elf;
}
