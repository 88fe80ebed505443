#include "report/dprofpp.h"

#include <string.h>

static const char flags[] = "hHVQIrsudalvUqTtSFAREzP";
static const char with_arg[] = "OgGfp";

/* One word of letters; *I is its index. False when something was wrong. */
static bool word(struct tl_dprofpp_options *o, int argc, char *const *argv, int *i, FILE *err)
{
	bool fine = true;

	for (const char *s = argv[*i] + 1; *s; s++) {
		unsigned char c = *s;

		if (strchr(with_arg, c)) {
			if (s[1]) {
				o->arg[c] = s + 1;
			} else if (*i + 1 < argc) {
				o->arg[c] = argv[++*i];
			} else {
				fprintf(err, "Option -%c needs an argument\n", c);
				return false;
			}
			o->on[c] = true;
			return fine;
		}
		if (strchr(flags, c)) {
			o->on[c] = true;
		} else {
			fprintf(err, "Unknown option: %c\n", c);
			fine = false;
		}
	}
	return fine;
}

bool tl_dprofpp_parse(struct tl_dprofpp_options *o, int argc, char *const *argv, FILE *err)
{
	bool fine = true;
	int i;

	for (i = 0; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--help")) {
			o->on['h'] = true;
			continue;
		}
		fine &= word(o, argc, argv, &i, err);
	}
	if (i < argc)
		o->profile = argv[i];
	return fine;
}
