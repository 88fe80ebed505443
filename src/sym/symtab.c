/* Symbols become functions: collected from every table, sorted, one per address. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/image_priv.h"
#include "sym/names.h"

struct load {
	struct tl_image *img;
	tl_sym_vec syms;
	tl_cold_vec colds;
	bool full; /* a symbol table that names static functions too */
};

/* One symbol table while it is read. */
struct table {
	Elf *elf;
	Elf_Data *syms, *versions, *defs;
	size_t strings, def_strings;
	uint8_t origin;
	uint32_t file;
};

static bool is_text_like(const struct tl_image *img, uint64_t at)
{
	return !img->has_sections || tl_image_section_at(img, at);
}

/* NULL: it may be a function. "": not even worth a word. */
static const char *why_not(const struct load *l, const GElf_Sym *s, const char *name)
{
	const struct tl_text_section *sec;
	int type = GELF_ST_TYPE(s->st_info), bind = GELF_ST_BIND(s->st_info);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_COMMON || !*name)
		return "";
	if (type == STT_NOTYPE) {
		/* Labels of hand-written code, marks of the linker, mapping symbols. */
		if (name[0] == '.' || name[0] == '$' || s->st_shndx == SHN_ABS ||
		    !tl_image_is_code(l->img, s->st_value))
			return "";
		if (bind == STB_LOCAL)
			return "a local label, not declared a function";
	}
	if (s->st_shndx == SHN_ABS)
		return "an absolute symbol";
	if (!tl_image_is_code(l->img, s->st_value))
		return "not in an executable segment";
	sec = tl_image_section_at(l->img, s->st_value);
	if (sec && sec->plt)
		return "a PLT stub";
	if (!is_text_like(l->img, s->st_value))
		return "outside every executable section";
	return NULL;
}

/* Where ".cold" or ".cold.N" begins at the end of NAME, or 0. */
static size_t cold_at(const char *name)
{
	const char *dot = strstr(name, ".cold"), *next;

	if (!dot)
		return 0;
	while ((next = strstr(dot + 1, ".cold")))
		dot = next;
	next = dot + 5;
	if (*next == '.')
		next += 1 + strspn(next + 1, "0123456789");
	return *next ? 0 : (size_t)(dot - name);
}

static enum tl_bind bind_of(const GElf_Sym *s)
{
	switch (GELF_ST_BIND(s->st_info)) {
	case STB_LOCAL:
		return TL_BIND_LOCAL;
	case STB_WEAK:
		return TL_BIND_WEAK;
	}
	return TL_BIND_GLOBAL;
}

/* The name of a version that is not the default one of its symbol, or NULL. */
static const char *old_version(const struct table *t, size_t i)
{
	GElf_Versym v;
	GElf_Verdef def;
	GElf_Verdaux aux;
	int at = 0;

	if (!t->versions || !t->defs || !gelf_getversym(t->versions, (int)i, &v) || !(v & 0x8000))
		return NULL;
	for (int n = 0; n < 4096 && gelf_getverdef(t->defs, at, &def); n++) {
		if (def.vd_ndx == (v & 0x7fff)) {
			if (!gelf_getverdaux(t->defs, at + (int)def.vd_aux, &aux))
				return NULL;
			return elf_strptr(t->elf, t->def_strings, aux.vda_name);
		}
		if (def.vd_next == 0)
			break;
		at += (int)def.vd_next;
	}
	return NULL;
}

static void add_symbol(struct load *l, const struct table *t, size_t i, const GElf_Sym *s,
		       const char *name)
{
	struct tl_arena *a = &l->img->arena;
	const char *at = strchr(name, '@'), *why = why_not(l, s, name), *version = NULL;
	struct tl_sym sym = {
	    .value = s->st_value,
	    .size = s->st_size,
	    .file = t->file,
	    .bind = (uint8_t)bind_of(s),
	    .origin = t->origin,
	    .ifunc = GELF_ST_TYPE(s->st_info) == STT_GNU_IFUNC,
	    .notype = GELF_ST_TYPE(s->st_info) == STT_NOTYPE,
	};
	char *copy;
	size_t cold;

	if (why && !*why)
		return;
	/* .symtab spells versions out: f@@V is what links now, f@V what linked once. */
	copy = tl_arena_strdup(a, name);
	if (at && at != name) {
		copy[at - name] = '\0';
		if (at[1] != '@')
			version = at + 1;
	} else {
		version = old_version(t, i);
	}
	if (why) {
		tl_image_skip(l->img, copy, s->st_value, why);
		return;
	}
	sym.raw = copy;
	sym.version = version ? tl_arena_strdup(a, version) : NULL;
	cold = cold_at(copy);
	if (cold) {
		char *base = tl_arena_strdup(a, copy);

		base[cold] = '\0';
		tl_vec_push(&l->colds,
			    (struct tl_cold){.base = base, .sym = sym, .owner = SIZE_MAX});
		return;
	}
	tl_vec_push(&l->syms, sym);
}

static void read_table(struct load *l, struct table *t)
{
	GElf_Sym s;

	for (size_t i = 1; gelf_getsym(t->syms, (int)i, &s); i++) {
		int type = GELF_ST_TYPE(s.st_info);
		const char *name;

		if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE &&
		    type != STT_FILE)
			continue;
		name = elf_strptr(t->elf, t->strings, s.st_name);
		if (!name)
			continue;
		if (type == STT_FILE) {
			/* One without a name ends the last file's: the linker's own follow. */
			t->file = 0;
			if (*name) {
				t->file = (uint32_t)l->img->files.n;
				tl_vec_push(&l->img->files, tl_arena_strdup(&l->img->arena, name));
			}
			continue;
		}
		add_symbol(l, t, i, &s, name);
	}
}

static bool add_table(struct load *l, Elf *elf, GElf_Word type)
{
	Elf_Scn *scn = NULL;
	struct table t = {.elf = elf};
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		if (sh.sh_type == type && !t.syms) {
			t.syms = elf_getdata(scn, NULL);
			t.strings = sh.sh_link;
			t.origin = type == SHT_SYMTAB ? TL_FUNC_SYMTAB : TL_FUNC_DYNSYM;
		} else if (sh.sh_type == SHT_GNU_versym && type == SHT_DYNSYM) {
			t.versions = elf_getdata(scn, NULL);
		} else if (sh.sh_type == SHT_GNU_verdef && type == SHT_DYNSYM) {
			t.defs = elf_getdata(scn, NULL);
			t.def_strings = sh.sh_link;
		}
	}
	if (!t.syms || !t.syms->d_buf || t.syms->d_size == 0)
		return false;
	read_table(l, &t);
	return true;
}

static int cmp_sections(const void *a, const void *b)
{
	const struct tl_text_section *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

static void read_sections(struct tl_image *img, Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t strndx = 0;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &strndx) != 0)
		strndx = 0;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_ALLOC))
			continue;
		img->has_sections = true;
		if (!(sh.sh_flags & SHF_EXECINSTR) || sh.sh_size == 0 ||
		    sh.sh_addr + sh.sh_size < sh.sh_addr)
			continue;
		name = strndx ? elf_strptr(elf, strndx, sh.sh_name) : NULL;
		tl_vec_push(&img->text, (struct tl_text_section){
					    .lo = sh.sh_addr,
					    .hi = sh.sh_addr + sh.sh_size,
					    .plt = name && (!strncmp(name, ".plt", 4) ||
							    !strncmp(name, ".iplt", 5)),
					});
	}
	if (img->text.n)
		qsort(img->text.at, img->text.n, sizeof *img->text.at, cmp_sections);
}

/* Every table that names functions; files that lack one are helped out by debug files,
 * DWARF and unwinding tables, in this order. */
static void collect(struct load *l)
{
	struct tl_image *img = l->img;
	int fd, debug_fd = -1;
	Elf *elf = tl_image_elf(img, &fd), *debug = NULL, *mini;
	Dwfl *dwfl;

	if (!elf)
		return;
	tl_vec_push(&img->files, NULL);
	read_sections(img, elf);
	l->full = add_table(l, elf, SHT_SYMTAB);
	add_table(l, elf, SHT_DYNSYM);
	tl_elf_close(elf, fd);
	if (!l->full && (debug = tl_debugfile_open(img, &debug_fd))) {
		l->full = add_table(l, debug, SHT_SYMTAB);
		tl_elf_close(debug, debug_fd);
	}
	if (!l->full) {
		mini = tl_minisym_open(img, &dwfl);
		l->full = mini && add_table(l, mini, SHT_SYMTAB);
		tl_minisym_close(dwfl);
	}
	if (!l->full) {
		size_t before = l->syms.n;

		tl_dwarf_add(img, &l->syms);
		if (l->syms.n == before)
			tl_ehframe_add(img, &l->syms);
	}
}

/* Which of several names of one address stands in the tables: what a program calls it by
 * (`write', weak in libc) rather than what its library does (`__write', global). */
static int rank(const struct tl_sym *s)
{
	bool reserved = s->raw[0] == '_' && !tl_name_is_mangled(s->raw);

	if (s->origin == TL_FUNC_EH_FRAME)
		return 8;
	if (s->notype)
		return 7;
	switch ((enum tl_bind)s->bind) {
	case TL_BIND_GLOBAL:
		return reserved ? 2 : 0;
	case TL_BIND_LOCAL:
		return reserved ? 4 : 3;
	case TL_BIND_WEAK:
		return reserved ? 5 : 1;
	}
	return 6;
}

static int cmp_syms(const void *a, const void *b)
{
	const struct tl_sym *x = a, *y = b;
	size_t nx, ny;
	int rx, ry;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	rx = rank(x);
	ry = rank(y);
	if (rx != ry)
		return rx - ry;
	if (!x->version != !y->version)
		return x->version ? 1 : -1;
	nx = strspn(x->raw, "_");
	ny = strspn(y->raw, "_");
	if (nx != ny)
		return nx < ny ? -1 : 1;
	nx = strlen(x->raw);
	ny = strlen(y->raw);
	if (nx != ny)
		return nx < ny ? -1 : 1;
	rx = strcmp(x->raw, y->raw);
	return rx ? rx : x->origin - y->origin;
}

/* Names of [from, to) besides the first's, each once. */
static const char *const *raw_aliases(struct tl_arena *a, const struct tl_sym *from, size_t n)
{
	const char **out = tl_arena_alloc(a, n * sizeof *out);
	size_t k = 0;

	/* Equal names are neighbours but for their rank, and few. */
	for (size_t i = 1; i < n; i++) {
		bool known = !strcmp(from[i].raw, from->raw);

		for (size_t j = 0; j < k && !known; j++)
			known = !strcmp(out[j], from[i].raw);
		if (!known)
			out[k++] = from[i].raw;
	}
	out[k] = NULL;
	return k ? out : NULL;
}

static void add_func(struct load *l, const struct tl_sym *s, size_t n)
{
	struct tl_image *img = l->img;
	struct tl_func f = {
	    .image = img,
	    .entry = {s->value},
	    .size = s->size,
	    .raw = s->raw,
	    .origin = s->origin,
	    .ranges = s->ranges,
	    .n_ranges = s->n_ranges,
	};

	for (size_t i = 0; i < n; i++) {
		f.is_ifunc |= s[i].ifunc;
		if (!s->size && s[i].size > f.size)
			f.size = s[i].size;
	}
	if (n > 1)
		f.raw_aliases = raw_aliases(&img->arena, s, n);
	img->func_file[img->funcs.n] = s->bind == TL_BIND_LOCAL ? s->file : 0;
	img->func_version[img->funcs.n] = s->version;
	img->func_bind[img->funcs.n] = s->bind;
	tl_vec_push(&img->funcs, f);
}

/* A global label without a type in the middle of a function is none itself. */
static bool is_inner_label(const struct tl_image *img, const struct tl_sym *s, uint64_t end)
{
	return s->notype && img->funcs.n && s->value < end;
}

static void fold(struct load *l)
{
	struct tl_image *img = l->img;
	uint64_t end = 0;

	img->func_file = tl_calloc(l->syms.n, sizeof *img->func_file);
	img->func_version = tl_calloc(l->syms.n, sizeof *img->func_version);
	img->func_bind = tl_calloc(l->syms.n, sizeof *img->func_bind);
	tl_vec_reserve(&img->funcs, l->syms.n);
	for (size_t i = 0, n; i < l->syms.n; i += n) {
		const struct tl_sym *s = &l->syms.at[i];

		for (n = 1; i + n < l->syms.n && s[n].value == s->value;)
			n++;
		if (is_inner_label(img, s, end)) {
			tl_image_skip(img, s->raw, s->value, "a label inside another function");
			continue;
		}
		add_func(l, s, n);
		if (s->value + s->size > end && !s->notype)
			end = s->value + s->size;
	}
}

void tl_image_load_symbols(struct tl_image *img)
{
	struct load l = {.img = img};

	collect(&l);
	if (l.syms.n)
		qsort(l.syms.at, l.syms.n, sizeof *l.syms.at, cmp_syms);
	fold(&l);
	tl_layout_funcs(img, &l.syms, &l.colds);
	tl_image_name_funcs(img);
	tl_vec_fini(&l.syms);
	tl_vec_fini(&l.colds);
}
