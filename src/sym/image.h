/* sym/image.h - one ELF file and its functions.
 *
 * Images are shared: by all processes that map the same file. Addresses are the
 * file's (tl_faddr: what p_vaddr and symbols say). libdw and libelf only in sym/. */
#ifndef TL_SYM_IMAGE_H
#define TL_SYM_IMAGE_H

#include <sys/types.h>

#include "base/types.h"

enum tl_func_origin {
	TL_FUNC_SYMTAB,
	TL_FUNC_DYNSYM,
	TL_FUNC_DWARF,	  /* no symbol, but DWARF knows it */
	TL_FUNC_EH_FRAME, /* stripped: only a start and a size; named module+0xoffset */
};

struct tl_image;

struct tl_func {
	struct tl_image *image;
	tl_faddr entry;
	uint64_t size;	  /* of the main range; 0 only when nothing bounds it */
	const char *name; /* demangled, no blanks (SPEC.md 1.4), without parameters; a clone keeps
			     its suffix (.isra.0). Unique within the image: @file:line or
			     @module+0xoffset is appended to later ones */
	const char *bare; /* demangled, no blanks, no parameters, nothing appended: what patterns
			     match */
	const char *full; /* bare with its parameters */
	const char *raw;  /* as in the symbol table */
	enum tl_func_origin origin;
	bool is_ifunc; /* the resolver of an IFUNC */
	/* All the code it has, main range first: DW_AT_ranges and .cold parts. NULL, 0: just
	 * [entry, entry+size). */
	const struct tl_frange *ranges;
	uint32_t n_ranges;
	/* Other demangled names at this entry, NULL-terminated; or NULL. */
	const char *const *aliases;
	/* Other names as in the symbol table, likewise. */
	const char *const *raw_aliases;
};

/* Opens PATH, whatever leads to the bytes (/proc/PID/map_files/... as well); NAME is what
 * the file is called, the path as its process sees it, NULL for PATH itself. Errors name
 * the file and what is wrong with it. 32-bit and foreign files are refused here.
 * Symbols are read when first asked for; an image may be asked by several threads. */
int tl_image_open(const char *path, const char *name, struct tl_image **out);
struct tl_image *tl_image_ref(struct tl_image *img);
void tl_image_unref(struct tl_image *img);

const char *tl_image_path(const struct tl_image *img); /* absolute if it could be had */
/* libc.so.6 -> libc; a program: its base name. Fit for a profile: no blanks. */
const char *tl_image_short_name(const struct tl_image *img);
/* Meant to be run: no DT_SONAME, and an interpreter or static. */
bool tl_image_is_program(const struct tl_image *img);
/* DT_SONAME, or its base file name. */
const char *tl_image_soname(const struct tl_image *img);
const char *tl_image_build_id(const struct tl_image *img); /* hex, "" if none */
bool tl_image_is_static(const struct tl_image *img); /* no PT_INTERP and no DT_NEEDED */

/* All functions that could be probed, sorted by entry, one per address. PLT stubs,
 * .cold parts and symbols outside executable segments are not among them. */
size_t tl_image_funcs(struct tl_image *img, const struct tl_func **out);
/* The function whose code holds ADDR (main range, cold part), or NULL. */
const struct tl_func *tl_image_func_at(struct tl_image *img, tl_faddr addr);
/* By any of its names, raw or demangled; NULL if none or not unique. */
const struct tl_func *tl_image_func_named(struct tl_image *img, const char *name);

/* Why something that looks like a function is not in tl_image_funcs(): for `list' and -v. */
struct tl_func_skipped {
	const char *name;
	tl_faddr entry;
	const char *why;
};
size_t tl_image_skipped(struct tl_image *img, const struct tl_func_skipped **out);

/* From DWARF, read only when asked for. false: not known. FILE lives with the image. */
bool tl_image_line(struct tl_image *img, const struct tl_func *f, const char **file, unsigned *line);
/* Whether .debug_line or separate debug files can answer the above. */
bool tl_image_has_dwarf(struct tl_image *img);

/* Original bytes, of what the file maps; how many could be had. */
size_t tl_image_read(const struct tl_image *img, tl_faddr at, void *buf, size_t n);
/* PT_LOAD segments, for bias and padding. */
struct tl_segment {
	tl_faddr lo, hi; /* p_vaddr, p_vaddr + p_memsz */
	uint64_t file_offset, file_size;
	bool executable, writable;
};
size_t tl_image_segments(const struct tl_image *img, const struct tl_segment **out);
bool tl_image_eh_frame_hdr(const struct tl_image *img, tl_faddr *at, uint64_t *size);
tl_faddr tl_image_start(const struct tl_image *img); /* e_entry */

#endif
