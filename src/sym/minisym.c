/* .gnu_debugdata: an xz-compressed ELF file with the static functions' symbols, which
 * Fedora and its kin leave in stripped files.  libdwfl knows how to unpack it. */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "sym/image_priv.h"

/* Finding no debug file is the point: dwfl_standard_find_debuginfo() may ask a server. */
static int find_nothing(Dwfl_Module *mod, void **userdata, const char *modname, Dwarf_Addr base,
			const char *file_name, const char *link, GElf_Word crc, char **out)
{
	(void)mod, (void)userdata, (void)modname, (void)base;
	(void)file_name, (void)link, (void)crc, (void)out;
	return -1;
}

static int find_no_elf(Dwfl_Module *mod, void **userdata, const char *modname, Dwarf_Addr base,
		       char **file_name, Elf **elf)
{
	(void)mod, (void)userdata, (void)modname, (void)base, (void)file_name, (void)elf;
	return -1;
}

/* The unpacked file: libdwfl hands it out with its symbols only. */
static Elf *unpacked(Dwfl_Module *mod)
{
	GElf_Addr bias;
	Elf *outer = dwfl_module_getelf(mod, &bias);
	int n = dwfl_module_getsymtab(mod);

	for (int i = 1; i < n; i++) {
		Elf *elf = NULL;
		GElf_Sym s;
		GElf_Addr at;

		if (dwfl_module_getsym_info(mod, i, &s, &at, NULL, &elf, NULL) && elf &&
		    elf != outer)
			return elf;
	}
	return NULL;
}

static bool has_section(const struct tl_image *img)
{
	GElf_Shdr sh;
	int fd;
	Elf *elf = tl_image_elf(img, &fd);
	bool there = elf && tl_elf_section(elf, ".gnu_debugdata", &sh);

	tl_elf_close(elf, fd);
	return there;
}

Elf *tl_minisym_open(const struct tl_image *img, Dwfl **dwfl)
{
	static const Dwfl_Callbacks callbacks = {
	    .find_elf = find_no_elf,
	    .find_debuginfo = find_nothing,
	    .section_address = dwfl_offline_section_address,
	};
	Dwfl_Module *mod = NULL;
	Elf *elf = NULL;
	int fd = -1;

	*dwfl = NULL;
	if (!has_section(img) || !(*dwfl = dwfl_begin(&callbacks)))
		return NULL;
	fd = fcntl(img->fd, F_DUPFD_CLOEXEC, 3);
	dwfl_report_begin(*dwfl);
	if (fd >= 0)
		mod = dwfl_report_elf(*dwfl, img->short_name, img->opened, fd, 0, true);
	dwfl_report_end(*dwfl, NULL, NULL);
	if (mod)
		elf = unpacked(mod);
	else if (fd >= 0)
		close(fd);
	return elf;
}

void tl_minisym_close(Dwfl *dwfl)
{
	if (dwfl)
		dwfl_end(dwfl);
}
