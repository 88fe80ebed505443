/* What only debug information knows: lines, and functions without symbols.
 *
 * Compilation units are found by address and read one by one when something in them is
 * asked for; only a file with DWARF and without symbols is read as a whole. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/image_priv.h"

/* So much .debug_info is read without being asked to. */
enum { CHEAP_BYTES = 32 << 20 };
/* Corrupt trees could nest without end. */
enum { DEPTH_MAX = 64 };

struct unit {
	Dwarf_Die die;	/* with ranges and the line table */
	Dwarf_Die tree; /* with the functions: of the .dwo file when split */
	bool indexed;
};

struct span {
	uint64_t lo, hi;
	uint32_t unit;
};

struct place {
	const char *file;
	int line;
};

struct tl_dwarf {
	Elf *elf;
	int fd;
	Dwarf *dbg;
	uint64_t info_size;
	bool listed;
	TL_VEC(struct unit) units;
	TL_VEC(struct span) spans; /* sorted by lo */
	struct tl_map places;	   /* entry -> struct place */
	struct tl_arena arena;
};

void tl_dwarf_free(struct tl_dwarf *d)
{
	if (!d)
		return;
	tl_map_fini(&d->places);
	tl_vec_fini(&d->units);
	tl_vec_fini(&d->spans);
	tl_arena_fini(&d->arena);
	if (d->dbg)
		dwarf_end(d->dbg);
	tl_elf_close(d->elf, d->fd);
	free(d);
}

static bool has_info(Elf *elf, uint64_t *size)
{
	static const char *const names[] = {".debug_info", ".zdebug_info", ".debug_line"};
	GElf_Shdr sh;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (tl_elf_section(elf, names[i], &sh) && sh.sh_type != SHT_NOBITS && sh.sh_size) {
			GElf_Chdr ch;
			Elf_Scn *scn = tl_elf_section(elf, names[i], &sh);

			*size = sh.sh_flags & SHF_COMPRESSED && gelf_getchdr(scn, &ch) ? ch.ch_size
										       : sh.sh_size;
			return true;
		}
	return false;
}

/* libdw (0.188) trusts the string sections to end with a zero byte, as those of whole files
 * do.  The data is a copy in memory: the file was not mapped. */
static void terminate_strings(Elf *elf)
{
	static const char *const names[] = {".debug_str", ".debug_line_str"};
	GElf_Shdr sh;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		Elf_Scn *scn = tl_elf_section(elf, names[i], &sh);
		Elf_Data *data;

		if (!scn || sh.sh_type == SHT_NOBITS)
			continue;
		if (sh.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
			continue;
		data = elf_getdata(scn, NULL);
		if (data && data->d_buf && data->d_size)
			((char *)data->d_buf)[data->d_size - 1] = '\0';
	}
}

/* The file itself or its debug file, whichever has DWARF; NULL if none has. */
static struct tl_dwarf *open_dwarf(struct tl_image *img)
{
	struct tl_dwarf *d;

	if (img->dwarf_done)
		return img->dwarf;
	img->dwarf_done = true;
	d = tl_calloc(1, sizeof *d);
	d->elf = tl_image_elf(img, &d->fd);
	if (d->elf && !has_info(d->elf, &d->info_size)) {
		tl_elf_close(d->elf, d->fd);
		d->elf = tl_debugfile_open(img, &d->fd);
		if (d->elf && !has_info(d->elf, &d->info_size)) {
			tl_elf_close(d->elf, d->fd);
			d->elf = NULL;
		}
	}
	if (d->elf)
		terminate_strings(d->elf);
	if (d->elf)
		d->dbg = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	else
		d->fd = -1;
	if (!d->dbg) {
		tl_dwarf_free(d);
		return NULL;
	}
	img->dwarf = d;
	return d;
}

bool tl_image_has_dwarf(struct tl_image *img)
{
	bool has;

	pthread_mutex_lock(&img->lock);
	has = open_dwarf(img) != NULL;
	pthread_mutex_unlock(&img->lock);
	return has;
}

bool tl_dwarf_is_cheap(struct tl_image *img)
{
	struct tl_dwarf *d = open_dwarf(img);

	return d && d->info_size <= CHEAP_BYTES;
}

static int cmp_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

static void list_units(struct tl_dwarf *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die die, sub;
	uint8_t type;

	if (d->listed)
		return;
	d->listed = true;
	while (dwarf_get_units(d->dbg, cu, &cu, &version, &type, &die, &sub) == 0) {
		Dwarf_Addr base, lo, hi;
		ptrdiff_t at = 0;
		bool split = type == DW_UT_skeleton && sub.cu;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		while ((at = dwarf_ranges(&die, at, &base, &lo, &hi)) > 0)
			if (hi > lo)
				tl_vec_push(&d->spans, (struct span){lo, hi, (uint32_t)d->units.n});
		tl_vec_push(&d->units, (struct unit){.die = die, .tree = split ? sub : die});
	}
	if (d->spans.n)
		qsort(d->spans.at, d->spans.n, sizeof *d->spans.at, cmp_spans);
}

/* --- walking the functions of a unit ------------------------------------------------- */

struct walk {
	struct tl_dwarf *d;
	struct tl_image *img; /* when functions are wanted */
	tl_sym_vec *syms;
};

/* F5: entry_pc, or the first range; never the lowest address, which may be a cold part. */
static bool entry_of(Dwarf_Die *die, Dwarf_Addr *entry)
{
	Dwarf_Addr base, hi;

	if (dwarf_entrypc(die, entry) == 0)
		return *entry != 0;
	return dwarf_ranges(die, 0, &base, entry, &hi) > 0 && *entry != 0;
}

/* As dwarf_decl_file(), which is content to abort (elfutils 0.188, an assertion) when a
 * unit's line table is missing or broken. */
static const char *decl_file(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word index;
	Dwarf_Die unit;
	const char *s;
	size_t n;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) ||
	    dwarf_formudata(&attr, &index) != 0 ||
	    dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) == NULL ||
	    dwarf_getsrcfiles(&unit, &files, &n) != 0 || index >= n)
		return NULL;
	s = dwarf_filesrc(files, index, NULL, NULL);
	return s && strcmp(s, "???") ? s : NULL; /* index 0 of DWARF 4 */
}

static void note_place(struct walk *w, Dwarf_Die *die, uint64_t entry)
{
	struct place *p;
	const char *file = decl_file(die);
	int line = 0;

	if (!file || dwarf_decl_line(die, &line) != 0 || tl_map_get(&w->d->places, entry))
		return;
	p = tl_arena_alloc(&w->d->arena, sizeof *p);
	*p = (struct place){file, line};
	tl_map_put(&w->d->places, entry, p);
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *s = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		s = dwarf_formstring(&attr);
	return s ? s : dwarf_diename(die);
}

static void add_ranges(struct walk *w, Dwarf_Die *die, struct tl_sym *s)
{
	TL_VEC(struct tl_frange) v = {0};
	Dwarf_Addr base, lo, hi;
	struct tl_frange *r;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0 && v.n < 1024) {
		if (hi <= lo || !tl_image_is_code(w->img, lo))
			continue;
		tl_vec_push(&v, (struct tl_frange){{lo}, {hi}});
		if (s->value >= lo && s->value < hi) {
			v.at[v.n - 1] = v.at[0];
			v.at[0] = (struct tl_frange){{lo}, {hi}};
			s->size = hi - s->value;
		}
	}
	if (v.n > 1 && s->size) {
		r = tl_arena_alloc(&w->img->arena, v.n * sizeof *r);
		memcpy(r, v.at, v.n * sizeof *r);
		s->ranges = r;
		s->n_ranges = (uint32_t)v.n;
	}
	tl_vec_fini(&v);
}

static void add_function(struct walk *w, Dwarf_Die *die, uint64_t entry)
{
	const struct tl_text_section *sec = tl_image_section_at(w->img, entry);
	const char *name = linkage_name(die);
	struct tl_sym s = {.value = entry, .bind = TL_BIND_LOCAL, .origin = TL_FUNC_DWARF};
	Dwarf_Attribute attr;

	if (!name || !*name || !tl_image_is_code(w->img, entry) || (sec && sec->plt))
		return;
	if (dwarf_attr_integrate(die, DW_AT_external, &attr))
		s.bind = TL_BIND_GLOBAL;
	s.raw = tl_arena_strdup(&w->img->arena, name);
	add_ranges(w, die, &s);
	tl_vec_push(w->syms, s);
}

static void walk_children(struct walk *w, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		Dwarf_Addr entry;

		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			if (entry_of(&die, &entry)) {
				note_place(w, &die, entry);
				if (w->syms)
					add_function(w, &die, entry);
			}
			/* Nested functions, and methods of local classes. */
			walk_children(w, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_module:
		case DW_TAG_lexical_block:
			walk_children(w, &die, depth + 1);
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

static void index_unit(struct walk *w, struct unit *u)
{
	if (u->indexed && !w->syms)
		return;
	u->indexed = true;
	walk_children(w, &u->tree, 0);
}

void tl_dwarf_add(struct tl_image *img, tl_sym_vec *syms)
{
	struct tl_dwarf *d = open_dwarf(img);
	struct walk w = {d, img, syms};

	if (!d)
		return;
	list_units(d);
	for (size_t i = 0; i < d->units.n; i++)
		index_unit(&w, &d->units.at[i]);
}

/* --- lines ---------------------------------------------------------------------------- */

static struct unit *unit_at(struct tl_dwarf *d, uint64_t at)
{
	size_t lo = 0, hi = d->spans.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->spans.at[mid].lo <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || at >= d->spans.at[lo - 1].hi)
		return NULL;
	return &d->units.at[d->spans.at[lo - 1].unit];
}

bool tl_dwarf_line(struct tl_image *img, const struct tl_func *f, const char **file, unsigned *line)
{
	struct tl_dwarf *d = open_dwarf(img);
	struct walk w = {.d = d};
	const struct place *p;
	struct unit *u;
	Dwarf_Line *row;
	int n = 0;

	if (!d)
		return false;
	list_units(d);
	u = unit_at(d, f->entry.u);
	if (!u)
		return false;
	index_unit(&w, u);
	p = tl_map_get(&d->places, f->entry.u);
	if (p) {
		*file = p->file;
		*line = (unsigned)p->line;
		return true;
	}
	/* Assembly, and -gmlt: the row of its first instruction. */
	row = dwarf_getsrc_die(&u->die, f->entry.u);
	if (!row || !(*file = dwarf_linesrc(row, NULL, NULL)))
		return false;
	dwarf_lineno(row, &n);
	*line = (unsigned)n;
	return true;
}
