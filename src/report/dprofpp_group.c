#define PCRE2_CODE_UNIT_WIDTH 8
#include "report/dprofpp.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

/* Perl's idea of a string that is false: the option is off. */
static bool off(const char *re)
{
	return !re || !*re || !strcmp(re, "0");
}

static int compile(const char *re, pcre2_code **out)
{
	PCRE2_UCHAR why[128];
	PCRE2_SIZE at;
	int code;

	*out = pcre2_compile((PCRE2_SPTR)re, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
	if (*out)
		return TL_OK;
	pcre2_get_error_message(code, why, sizeof why);
	return tl_fail(-EINVAL, "%s: not a regular expression: %s at %zu", re, (char *)why,
		       (size_t)at);
}

static bool matches(const pcre2_code *re, const char *s)
{
	pcre2_match_data *m = pcre2_match_data_create(1, NULL);
	int got = pcre2_match(re, (PCRE2_SPTR)s, strlen(s), 0, 0, m, NULL);

	pcre2_match_data_free(m);
	return got >= 0;
}

int tl_dprofpp_group_open(struct tl_dprofpp *d)
{
	pcre2_code *re;
	int err;

	if (off(d->o->arg['G']))
		return TL_OK;
	err = compile(d->o->arg['G'], &re);
	if (!err)
		d->group = re;
	return err;
}

void tl_dprofpp_group_close(struct tl_dprofpp *d)
{
	pcre2_code_free(d->group);
	d->group = NULL;
}

int tl_dprofpp_filter(struct tl_dprofpp *d)
{
	pcre2_code *re;
	size_t n = 0;
	int err;

	if (off(d->o->arg['f']))
		return TL_OK;
	err = compile(d->o->arg['f'], &re);
	if (err)
		return err;
	for (size_t i = 0; i < d->rows.n; i++)
		if (!matches(re, d->rows.at[i].name))
			d->rows.at[n++] = d->rows.at[i];
	d->rows.n = n;
	pcre2_code_free(re);
	return TL_OK;
}

static void join(struct tl_dp_row *to, const struct tl_dp_row *from)
{
	to->calls += from->calls;
	to->self += from->self;
	to->total += from->total;
}

int tl_dprofpp_group(struct tl_dprofpp *d)
{
	struct tl_dp_row group = {.name = d->o->arg['G'], .order = SIZE_MAX - 1};
	struct tl_dp_row other = {.name = "other", .order = SIZE_MAX};
	size_t n = 0;

	if (!d->group)
		return TL_OK;
	fprintf(d->out, "Option G Grouping: [%s]\n", group.name);
	for (size_t i = 0; i < d->rows.n; i++) {
		if (matches(d->group, d->rows.at[i].name))
			join(&group, &d->rows.at[i]);
		else if (d->o->on['P'])
			join(&other, &d->rows.at[i]);
		else
			d->rows.at[n++] = d->rows.at[i];
	}
	d->rows.n = n;
	tl_vec_push(&d->rows, group);
	if (d->o->on['P'])
		tl_vec_push(&d->rows, other);
	fprintf(d->out, "Grouping [%s] Calls: [%.15g]\n", group.name, group.calls);
	fprintf(d->out, "Grouping [%s] Times: [%.15g]\n", group.name, group.self);
	fprintf(d->out, "Grouping [%s] IncTimes: [%.15g]\n", group.name, group.total);
	return TL_OK;
}

/* With -G alone an exit mark's name is compared with the frame it closes. */
int tl_dprofpp_mismatch(void *arg, const char *top, const char *name, bool *credit_top)
{
	struct tl_dprofpp *d = arg;
	size_t n = strlen(top);

	if (!matches(d->group, name))
		return TL_OK;
	if (n >= 8 && !strcmp(top + n - 8, "AUTOLOAD")) {
		*credit_top = d->o->on['A'];
		return TL_OK;
	}
	if (d->o->on['F']) {
		fprintf(d->err, "Garbled profile, faking exit timestamp:\n\t%s => %s.\n", name,
			top);
		*credit_top = true;
		return TL_OK;
	}
	fprintf(d->out, "%s\n", top);
	return tl_fail(-EBADMSG, "Garbled profile, unexpected exit time stamp");
}
