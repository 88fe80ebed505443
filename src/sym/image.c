#include "sym/image.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "sym/image_priv.h"
#include "sym/names.h"

/* The only machine there is so far.  sym/ reads files and must not know arch/; a second
 * one makes this a parameter. */
enum { MACHINE = EM_X86_64 };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

Elf *tl_elf_open(const char *path, int *fd)
{
	Elf *elf;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	/* Read, not mapped: a file cut short meanwhile must not kill us by SIGBUS. */
	elf = elf_begin(*fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64)
		return elf;
	tl_elf_close(elf, *fd);
	*fd = -1;
	return NULL;
}

void tl_elf_close(Elf *elf, int fd)
{
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

Elf *tl_image_elf(const struct tl_image *img, int *fd)
{
	Elf *elf;

	*fd = fcntl(img->fd, F_DUPFD_CLOEXEC, 3);
	if (*fd < 0)
		return NULL;
	elf = elf_begin(*fd, ELF_C_READ, NULL);
	if (!elf) {
		close(*fd);
		*fd = -1;
	}
	return elf;
}

Elf_Scn *tl_elf_section(Elf *elf, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx) != 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *s;

		if (!gelf_getshdr(scn, shdr))
			continue;
		s = elf_strptr(elf, strndx, shdr->sh_name);
		if (s && !strcmp(s, name))
			return scn;
	}
	return NULL;
}

/* Refuses what we cannot trace, by the first bytes: libelf's own words do not tell a
 * shell script from a 32-bit program. */
static int check_header(const struct tl_image *img)
{
	unsigned char ident[EI_NIDENT];
	Elf64_Ehdr eh;
	ssize_t n = pread(img->fd, &eh, sizeof eh, 0);

	if (n < 0)
		return tl_fail(-errno, "%s: %s", img->path, strerror(errno));
	memcpy(ident, &eh, sizeof ident);
	if (n < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return tl_fail(-ENOEXEC, "%s: not an ELF file%s", img->path,
			       n >= 2 && ident[0] == '#' && ident[1] == '!'
				   ? " but a script; name its interpreter instead"
				   : "");
	if (n >= EI_NIDENT && ident[EI_CLASS] == ELFCLASS32)
		return tl_fail(-ENOEXEC, "%s: a 32-bit file; only 64-bit x86-64 can be traced",
			       img->path);
	if ((size_t)n < sizeof eh)
		return tl_fail(-ENOEXEC, "%s: truncated ELF file (%zd bytes)", img->path, n);
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_VERSION] != EV_CURRENT)
		return tl_fail(-ENOEXEC, "%s: corrupt ELF header", img->path);
	if (ident[EI_DATA] != ELFDATA2LSB || eh.e_machine != MACHINE)
		return tl_fail(-ENOEXEC,
			       "%s: made for another machine (e_machine %u); only x86-64 can be "
			       "traced",
			       img->path, eh.e_machine);
	if (eh.e_type != ET_EXEC && eh.e_type != ET_DYN)
		return tl_fail(-ENOEXEC, "%s: %s, neither a program nor a shared library",
			       img->path,
			       eh.e_type == ET_REL    ? "an object file"
			       : eh.e_type == ET_CORE ? "a core dump"
						      : "an ELF file of unknown type");
	return TL_OK;
}

static int cmp_segments(const void *a, const void *b)
{
	const struct tl_segment *x = a, *y = b;

	return (x->lo.u > y->lo.u) - (x->lo.u < y->lo.u);
}

static void add_segment(struct tl_image *img, const GElf_Phdr *ph)
{
	uint64_t size = (uint64_t)img->st.st_size, file_size = ph->p_filesz;

	if (ph->p_memsz == 0 || ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
		return;
	/* A truncated file has less than it says. */
	if (ph->p_offset >= size)
		file_size = 0;
	else if (file_size > size - ph->p_offset)
		file_size = size - ph->p_offset;
	if (file_size > ph->p_memsz)
		file_size = ph->p_memsz;
	tl_vec_push(&img->segments, (struct tl_segment){
					.lo = {ph->p_vaddr},
					.hi = {ph->p_vaddr + ph->p_memsz},
					.file_offset = ph->p_offset,
					.file_size = file_size,
					.executable = ph->p_flags & PF_X,
					.writable = ph->p_flags & PF_W,
				    });
}

/* What the dynamic section says, without section headers. */
static void read_dynamic(struct tl_image *img, const GElf_Phdr *ph, bool *needed)
{
	uint64_t strtab = 0, soname = 0;
	size_t n = ph->p_filesz / sizeof(Elf64_Dyn);
	bool has_soname = false;
	char name[256];
	Elf64_Dyn d;

	for (size_t i = 0; i < n && i < 4096; i++) {
		tl_faddr at = {ph->p_vaddr + i * sizeof d};

		if (tl_image_read(img, at, &d, sizeof d) != sizeof d || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_NEEDED)
			*needed = true;
		else if (d.d_tag == DT_STRTAB)
			strtab = d.d_un.d_ptr;
		else if (d.d_tag == DT_SONAME) {
			soname = d.d_un.d_val;
			has_soname = true;
		}
	}
	if (has_soname && strtab) {
		size_t got = tl_image_read(img, (tl_faddr){strtab + soname}, name, sizeof name);

		if (got && memchr(name, '\0', got) && name[0])
			img->soname = tl_strdup(name);
	}
}

static int read_segments(struct tl_image *img, Elf *elf)
{
	GElf_Phdr ph, dynamic = {0};
	bool interp = false, needed = false;
	GElf_Ehdr eh;
	size_t n;

	if (!gelf_getehdr(elf, &eh) || elf_getphdrnum(elf, &n) != 0)
		return tl_fail(-ENOEXEC, "%s: corrupt ELF header: %s", img->path, elf_errmsg(-1));
	img->start.u = eh.e_entry;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return tl_fail(-ENOEXEC,
				       "%s: truncated or corrupt ELF file: program header %zu",
				       img->path, i);
		if (ph.p_type == PT_LOAD)
			add_segment(img, &ph);
		else if (ph.p_type == PT_DYNAMIC)
			dynamic = ph;
		else if (ph.p_type == PT_INTERP)
			interp = true;
		else if (ph.p_type == PT_GNU_EH_FRAME) {
			img->eh_hdr.u = ph.p_vaddr;
			img->eh_hdr_size = ph.p_filesz;
		}
	}
	if (img->segments.n == 0)
		return tl_fail(-ENOEXEC, "%s: corrupt ELF file: nothing of it would be loaded",
			       img->path);
	qsort(img->segments.at, img->segments.n, sizeof *img->segments.at, cmp_segments);
	if (dynamic.p_memsz)
		read_dynamic(img, &dynamic, &needed);
	img->is_static = !interp && !needed;
	img->is_program = !img->soname && (interp || img->is_static);
	return TL_OK;
}

static void read_build_id(struct tl_image *img, Elf *elf)
{
	struct tl_strbuf hex = {0};
	const void *id = NULL;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);

	for (ssize_t i = 0; i < n && i < 64; i++)
		tl_strbuf_printf(&hex, "%02x", ((const unsigned char *)id)[i]);
	img->build_id = tl_strdup(tl_strbuf_text(&hex));
	tl_strbuf_fini(&hex);
}

/* libc.so.6 -> libc; a program keeps its name, dots and all. */
static char *short_name(const char *file)
{
	char *s = tl_strdup(file), *so = s;

	while ((so = strstr(so, ".so"))) {
		if (so > s && (so[3] == '\0' || so[3] == '.')) {
			*so = '\0';
			break;
		}
		so += 3;
	}
	tl_name_clean(s);
	return s;
}

static char *absolute(const char *path)
{
	char *real = path[0] == '/' ? NULL : realpath(path, NULL);

	return real ? real : tl_strdup(path);
}

static int open_file(struct tl_image *img, const char *path)
{
	img->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (img->fd < 0)
		return tl_fail(-errno, "%s: %s", img->path, strerror(errno));
	if (fstat(img->fd, &img->st) != 0)
		return tl_fail(-errno, "%s: %s", img->path, strerror(errno));
	if (!S_ISREG(img->st.st_mode))
		return tl_fail(S_ISDIR(img->st.st_mode) ? -EISDIR : -ENOEXEC, "%s: %s", img->path,
			       S_ISDIR(img->st.st_mode) ? strerror(EISDIR) : "not a regular file");
	return check_header(img);
}

int tl_image_open(const char *path, const char *name, struct tl_image **out)
{
	struct tl_image *img = tl_calloc(1, sizeof *img);
	int r, fd = -1;
	Elf *elf = NULL;

	*out = NULL;
	atomic_init(&img->refs, 1);
	pthread_mutex_init(&img->lock, NULL);
	img->fd = -1;
	img->opened = absolute(path);
	img->path = absolute(name ? name : path);
	r = open_file(img, path);
	if (r != TL_OK)
		goto out;
	elf_version(EV_CURRENT);
	elf = tl_image_elf(img, &fd);
	if (!elf) {
		r = tl_fail(-ENOEXEC, "%s: cannot be read as ELF: %s", img->path, elf_errmsg(-1));
		goto out;
	}
	r = read_segments(img, elf);
	if (r != TL_OK)
		goto out;
	read_build_id(img, elf);
	img->short_name = short_name(img->soname ? img->soname : base_name(img->path));
	*out = img;
	img = NULL;
out:
	tl_elf_close(elf, fd);
	tl_image_unref(img);
	return r;
}

struct tl_image *tl_image_ref(struct tl_image *img)
{
	atomic_fetch_add(&img->refs, 1);
	return img;
}

void tl_image_unref(struct tl_image *img)
{
	if (!img || atomic_fetch_sub(&img->refs, 1) != 1)
		return;
	tl_dwarf_free(img->dwarf);
	tl_strmap_fini(&img->by_name);
	tl_vec_fini(&img->funcs);
	tl_vec_fini(&img->files);
	tl_vec_fini(&img->parts);
	tl_vec_fini(&img->skipped);
	tl_vec_fini(&img->text);
	tl_vec_fini(&img->segments);
	tl_arena_fini(&img->arena);
	free(img->func_file);
	free(img->func_version);
	free(img->func_bind);
	free(img->max_end);
	free(img->path);
	free(img->opened);
	free(img->short_name);
	free(img->soname);
	free(img->build_id);
	if (img->fd >= 0)
		close(img->fd);
	pthread_mutex_destroy(&img->lock);
	free(img);
}

const char *tl_image_path(const struct tl_image *img)
{
	return img->path;
}

const char *tl_image_short_name(const struct tl_image *img)
{
	return img->short_name;
}

const char *tl_image_soname(const struct tl_image *img)
{
	return img->soname ? img->soname : base_name(img->path);
}

const char *tl_image_build_id(const struct tl_image *img)
{
	return img->build_id;
}

bool tl_image_is_static(const struct tl_image *img)
{
	return img->is_static;
}

bool tl_image_is_program(const struct tl_image *img)
{
	return img->is_program;
}

size_t tl_image_segments(const struct tl_image *img, const struct tl_segment **out)
{
	*out = img->segments.at;
	return img->segments.n;
}

bool tl_image_eh_frame_hdr(const struct tl_image *img, tl_faddr *at, uint64_t *size)
{
	*at = img->eh_hdr;
	*size = img->eh_hdr_size;
	return img->eh_hdr_size != 0;
}

tl_faddr tl_image_start(const struct tl_image *img)
{
	return img->start;
}

const struct tl_segment *tl_image_segment_at(const struct tl_image *img, uint64_t at)
{
	for (size_t i = 0; i < img->segments.n; i++)
		if (at >= img->segments.at[i].lo.u && at < img->segments.at[i].hi.u)
			return &img->segments.at[i];
	return NULL;
}

static size_t read_file(const struct tl_image *img, uint64_t offset, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(img->fd, (char *)buf + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

size_t tl_image_read(const struct tl_image *img, tl_faddr at, void *buf, size_t n)
{
	char *to = buf;
	size_t done = 0;

	while (done < n) {
		const struct tl_segment *s = tl_image_segment_at(img, at.u + done);
		uint64_t into, want, filed;

		if (!s)
			break;
		into = at.u + done - s->lo.u;
		want = s->hi.u - s->lo.u - into;
		if (want > n - done)
			want = n - done;
		filed = into < s->file_size ? s->file_size - into : 0;
		if (filed > want)
			filed = want;
		if (filed) {
			size_t got = read_file(img, s->file_offset + into, to + done, filed);

			if (got < filed)
				return done + got;
		}
		memset(to + done + filed, 0, want - filed);
		done += want;
	}
	return done;
}
