/* textcheck PID: compares the text of a process's executable with its file.
 *
 * Reads every r-x mapping of /proc/PID/exe's file through /proc/PID/mem.
 * Prints where the first bytes differ; 0 when none does, 1 when some do, 2 when
 * it cannot tell. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mapping {
	unsigned long start, end, offset;
};

static int differs(int mem, int file, const struct mapping *m)
{
	unsigned char now[4096], want[4096];

	for (unsigned long at = 0; at < m->end - m->start; at += sizeof now) {
		ssize_t n = pread(file, want, sizeof want, m->offset + at);

		if (n < 0 || pread(mem, now, sizeof now, m->start + at) != sizeof now)
			return 2;
		for (ssize_t i = 0; i < n; i++) {
			if (now[i] == want[i])
				continue;
			printf("file offset %#lx: %02x instead of %02x\n", m->offset + at + i,
			       now[i], want[i]);
			return 1;
		}
	}
	return 0;
}

/* Compares the mappings of PATH that MAPS lists; 2 when there is none. */
static int check(FILE *maps, const char *path, int mem, int file)
{
	char line[4400], perms[8], name[4096];
	struct mapping m;
	int found = 0, r;

	while (fgets(line, sizeof line, maps)) {
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &m.start, &m.end, perms,
			   &m.offset, name) < 4)
			continue;
		if (perms[2] != 'x' || strcmp(name, path))
			continue;
		found = 1;
		r = differs(mem, file, &m);
		if (r)
			return r;
	}
	return found ? 0 : 2;
}

int main(int argc, char **argv)
{
	char name[64], path[4096];
	int mem, file;
	ssize_t len;
	FILE *maps;

	if (argc != 2)
		return 2;
	snprintf(name, sizeof name, "/proc/%s/exe", argv[1]);
	len = readlink(name, path, sizeof path - 1);
	if (len < 0)
		return 2;
	path[len] = 0;
	file = open(name, O_RDONLY);
	snprintf(name, sizeof name, "/proc/%s/mem", argv[1]);
	mem = open(name, O_RDONLY);
	snprintf(name, sizeof name, "/proc/%s/maps", argv[1]);
	maps = fopen(name, "r");
	if (file < 0 || mem < 0 || !maps)
		return 2;
	return check(maps, path, mem, file);
}
