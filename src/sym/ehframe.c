/* Function starts of stripped files, from the tables that unwinding needs. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sym/image_priv.h"

/* A position in the table's bytes; ok turns false at the end, for good. */
struct cursor {
	const uint8_t *at, *end;
	bool ok;
};

static uint64_t fixed(struct cursor *c, unsigned n, bool sign)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->at) < n) {
		c->ok = false;
		return 0;
	}
	memcpy(&v, c->at, n); /* both ends are little-endian: image.c refuses others */
	c->at += n;
	if (sign && n < 8 && v >> (n * 8 - 1))
		v |= ~(uint64_t)0 << (n * 8);
	return v;
}

static uint64_t leb(struct cursor *c, bool sign)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		if (c->at >= c->end) {
			c->ok = false;
			return 0;
		}
		b = *c->at++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (sign && shift < 64 && b & 0x40)
		v |= ~(uint64_t)0 << shift;
	return v;
}

/* The number alone, without what it is relative to. */
static uint64_t encoded(struct cursor *c, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return fixed(c, 8, false);
	case DW_EH_PE_udata4:
		return fixed(c, 4, false);
	case DW_EH_PE_sdata4:
		return fixed(c, 4, true);
	case DW_EH_PE_udata2:
		return fixed(c, 2, false);
	case DW_EH_PE_sdata2:
		return fixed(c, 2, true);
	case DW_EH_PE_uleb128:
		return leb(c, false);
	case DW_EH_PE_sleb128:
		return leb(c, true);
	}
	c->ok = false;
	return 0;
}

struct cie {
	uint8_t encoding; /* of addresses in its FDEs */
	bool signal, augmented;
};

static struct cie read_cie(const Dwarf_CIE *d)
{
	struct cie cie = {.encoding = DW_EH_PE_absptr};
	struct cursor c = {d->augmentation_data, d->augmentation_data,
			   d->augmentation_data != NULL};
	const char *aug = d->augmentation;

	if (!aug || *aug != 'z')
		return cie;
	cie.augmented = true;
	c.end += d->augmentation_data_size;
	for (aug++; *aug && c.ok; aug++) {
		if (*aug == 'R') {
			uint64_t e = fixed(&c, 1, false);

			if (c.ok)
				cie.encoding = (uint8_t)e;
		} else if (*aug == 'P') {
			encoded(&c, (uint8_t)fixed(&c, 1, false));
		} else if (*aug == 'L') {
			fixed(&c, 1, false);
		} else if (*aug == 'S') {
			cie.signal = true;
		}
	}
	return cie;
}

/* Whether code that begins here already has a frame.  A function entered by a call has
 * just its return address on the stack, which is what the CIE says; a cold part or a PLT
 * header starts by saying otherwise, before it advances by a single instruction. */
static bool has_frame(struct cursor c)
{
	while (c.ok && c.at < c.end) {
		uint8_t op = *c.at++;

		switch (op) {
		case DW_CFA_nop:
			continue;
		case DW_CFA_def_cfa:
		case DW_CFA_def_cfa_register:
		case DW_CFA_def_cfa_expression:
		case DW_CFA_def_cfa_sf:
		case DW_CFA_def_cfa_offset_sf:
			return true;
		case DW_CFA_def_cfa_offset:
			return leb(&c, false) != 8;
		default:
			/* A saved register means that something was pushed. */
			return (op & 0xc0) == DW_CFA_offset;
		}
	}
	return false;
}

static bool decode_fde(const Dwarf_FDE *fde, const struct cie *cie, const uint8_t *bytes,
		       uint64_t vaddr, struct tl_sym *out, struct cursor *program)
{
	struct cursor c = {fde->start, fde->end, true};
	uint64_t pc = vaddr + (uint64_t)(fde->start - bytes), n;

	if (cie->encoding == DW_EH_PE_omit || cie->encoding & DW_EH_PE_indirect)
		return false;
	out->value = encoded(&c, cie->encoding);
	if ((cie->encoding & 0x70) == DW_EH_PE_pcrel)
		out->value += pc;
	else if ((cie->encoding & 0x70) != DW_EH_PE_absptr)
		return false;
	out->size = encoded(&c, cie->encoding & 0x0f);
	if (cie->augmented) {
		n = leb(&c, false);
		if (n > (uint64_t)(c.end - c.at))
			return false;
		c.at += n;
	}
	*program = c;
	return c.ok && out->size;
}

static void add_fde(struct tl_image *img, const struct tl_sym *found, const struct cie *cie,
		    struct cursor program, tl_sym_vec *syms)
{
	const struct tl_text_section *sec = tl_image_section_at(img, found->value);
	struct tl_sym s = *found;

	if (!tl_image_is_code(img, s.value) || (sec && sec->plt))
		return;
	s.raw =
	    tl_arena_printf(&img->arena, "%s+0x%llx", img->short_name, (unsigned long long)s.value);
	s.bind = TL_BIND_LOCAL;
	s.origin = TL_FUNC_EH_FRAME;
	if (cie->signal)
		tl_image_skip(img, s.raw, s.value, "a signal frame: returned to, never called");
	else if (has_frame(program))
		tl_image_skip(img, s.raw, s.value,
			      "a part of another function: its frame exists when it begins");
	else
		tl_vec_push(syms, s);
}

static void walk(struct tl_image *img, Elf *elf, uint8_t *bytes, size_t n, uint64_t vaddr,
		 tl_sym_vec *syms)
{
	Elf_Data data = {
	    .d_buf = bytes, .d_type = ELF_T_BYTE, .d_size = n, .d_version = EV_CURRENT};
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Dwarf_Off at = 0, next = 0, cie_at = (Dwarf_Off)-1;
	struct cie cie = {0};
	Dwarf_CFI_Entry e;
	int r;

	for (; (r = dwarf_next_cfi(ident, &data, true, at, &next, &e)) <= 0; at = next) {
		struct tl_sym s = {0};
		struct cursor program;
		Dwarf_CFI_Entry of;
		Dwarf_Off skip;

		if (next <= at)
			return;
		if (r < 0 || dwarf_cfi_cie_p(&e))
			continue;
		if (e.fde.CIE_pointer != cie_at) {
			if (dwarf_next_cfi(ident, &data, true, e.fde.CIE_pointer, &skip, &of) !=
				0 ||
			    !dwarf_cfi_cie_p(&of))
				continue;
			cie = read_cie(&of.cie);
			cie_at = e.fde.CIE_pointer;
		}
		if (decode_fde(&e.fde, &cie, bytes, vaddr, &s, &program))
			add_fde(img, &s, &cie, program, syms);
	}
}

/* Without section headers .eh_frame_hdr leads to .eh_frame, and the end of the segment is
 * as good as its end: a zero length or nonsense stops the walk. */
static bool find_by_hdr(struct tl_image *img, uint64_t *at, uint64_t *size)
{
	uint8_t b[12];
	struct cursor c = {b + 4, b + sizeof b, true};
	const struct tl_segment *seg;

	if (!img->eh_hdr_size || tl_image_read(img, img->eh_hdr, b, sizeof b) != sizeof b)
		return false;
	if (b[0] != 1 || (b[1] & 0x70) != DW_EH_PE_pcrel)
		return false;
	*at = encoded(&c, b[1]) + img->eh_hdr.u + 4;
	seg = tl_image_segment_at(img, *at);
	if (!c.ok || !seg || *at - seg->lo.u >= seg->file_size)
		return false;
	*size = seg->lo.u + seg->file_size - *at;
	return true;
}

void tl_ehframe_add(struct tl_image *img, tl_sym_vec *syms)
{
	uint64_t at = 0, size = 0;
	uint8_t *bytes = NULL;
	GElf_Shdr sh;
	int fd;
	Elf *elf = tl_image_elf(img, &fd);

	if (!elf)
		return;
	if (tl_elf_section(elf, ".eh_frame", &sh)) {
		at = sh.sh_addr;
		size = sh.sh_size;
	} else if (!find_by_hdr(img, &at, &size)) {
		goto out;
	}
	if (size > (uint64_t)img->st.st_size)
		size = (uint64_t)img->st.st_size;
	bytes = tl_malloc(size);
	size = tl_image_read(img, (tl_faddr){at}, bytes, size);
	walk(img, elf, bytes, size, at, syms);
out:
	free(bytes);
	tl_elf_close(elf, fd);
}
