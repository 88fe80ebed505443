/* sym/image_priv.h - the inside of an image: private to sym/.
 *
 * image.c owns the file and its headers, symtab.c turns symbols into functions, with
 * ehframe.c and dwarf.c for files that have none; debugfile.c finds separate debug
 * files; uniq.c names the functions. */
#ifndef TL_SYM_IMAGE_PRIV_H
#define TL_SYM_IMAGE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "base/map.h"
#include "base/vec.h"
#include "sym/arena.h"
#include "sym/image.h"

enum tl_bind { TL_BIND_GLOBAL, TL_BIND_WEAK, TL_BIND_LOCAL };

/* A name with an address, from wherever. */
struct tl_sym {
	uint64_t value, size;
	const char *raw;     /* without version */
	const char *version; /* of a symbol that is not the default version; or NULL */
	uint32_t file;	     /* which STT_FILE it stands under (index into files); 0: none */
	uint8_t bind;	     /* enum tl_bind */
	uint8_t origin;	     /* enum tl_func_origin */
	bool ifunc, notype;
	const struct tl_frange *ranges; /* DWARF only */
	uint32_t n_ranges;
};
typedef TL_VEC(struct tl_sym) tl_sym_vec;

/* A piece of a function that has a symbol of its own (f.cold), until its owner is known. */
struct tl_cold {
	const char *base; /* its owner's raw name */
	struct tl_sym sym;
	size_t owner;	      /* index into syms, or SIZE_MAX */
	int score;	      /* how sure that is */
	struct tl_cold *next; /* of the same base */
};

typedef TL_VEC(struct tl_cold) tl_cold_vec;

/* An executable section, as far as there are section headers. */
struct tl_text_section {
	uint64_t lo, hi;
	bool plt;
};

/* Code of a function that does not begin at its entry. */
struct tl_part {
	uint64_t lo, hi;
	uint32_t func;
};

struct tl_dwarf;

struct tl_image {
	atomic_uint refs;
	int fd;
	struct stat st;
	char *path;   /* what it is called */
	char *opened; /* what was opened */
	char *short_name;
	char *soname; /* or NULL */
	char *build_id;
	bool is_static, is_program;
	tl_faddr start;
	tl_faddr eh_hdr;
	uint64_t eh_hdr_size;
	TL_VEC(struct tl_segment) segments;

	pthread_mutex_t lock; /* what follows is read when first asked for */
	bool loaded;
	struct tl_arena arena;
	TL_VEC(struct tl_func) funcs;
	TL_VEC(const char *) files;   /* STT_FILE names; [0] is NULL */
	uint32_t *func_file;	      /* per function: index into files */
	const char **func_version;    /* per function, or NULL */
	uint8_t *func_bind;	      /* per function: enum tl_bind */
	uint64_t *max_end;	      /* per function: the furthest end up to it */
	TL_VEC(struct tl_part) parts; /* sorted by lo */
	TL_VEC(struct tl_func_skipped) skipped;
	TL_VEC(struct tl_text_section) text; /* sorted by lo */
	bool has_sections;
	struct tl_strmap by_name;
	bool by_name_done;
	struct tl_dwarf *dwarf;
	bool dwarf_done;
};

/* image.c */
const struct tl_segment *tl_image_segment_at(const struct tl_image *img, uint64_t at);
bool tl_image_is_code(const struct tl_image *img, uint64_t at);
const struct tl_text_section *tl_image_section_at(const struct tl_image *img, uint64_t at);
void tl_image_skip(struct tl_image *img, const char *name, uint64_t at, const char *why);
/* An Elf of a descriptor of one's own; both ended by tl_elf_close(). NULL if it is none. */
Elf *tl_elf_open(const char *path, int *fd);
void tl_elf_close(Elf *elf, int fd);
Elf *tl_image_elf(const struct tl_image *img, int *fd);
Elf_Scn *tl_elf_section(Elf *elf, const char *name, GElf_Shdr *shdr);

/* layout.c: sizes, parts and ranges of funcs, from what was collected. */
void tl_layout_funcs(struct tl_image *img, const tl_sym_vec *syms, tl_cold_vec *colds);
/* symtab.c: fills funcs, parts, skipped. */
void tl_image_load_symbols(struct tl_image *img);
/* minisym.c: what .gnu_debugdata holds, or NULL; DWFL is to be closed in either case. */
Elf *tl_minisym_open(const struct tl_image *img, Dwfl **dwfl);
void tl_minisym_close(Dwfl *dwfl);
/* ehframe.c: functions that only unwinding tables know. */
void tl_ehframe_add(struct tl_image *img, tl_sym_vec *syms);
/* uniq.c: sets bare, full, name of all functions. */
void tl_image_name_funcs(struct tl_image *img);
/* debugfile.c: the separate debug file, or NULL. */
Elf *tl_debugfile_open(const struct tl_image *img, int *fd);
/* dwarf.c; the lock is held. */
void tl_dwarf_add(struct tl_image *img, tl_sym_vec *syms);
bool tl_dwarf_line(struct tl_image *img, const struct tl_func *f, const char **file,
		   unsigned *line);
/* Whether lines can be had at little cost. */
bool tl_dwarf_is_cheap(struct tl_image *img);
void tl_dwarf_free(struct tl_dwarf *d);

#endif
