#!/bin/bash
# The command line: what is understood, what is refused and how, and that the table of
# options, --help and the man page name the same ones. TAP; exit status 1 on a failure.
#
#	TRAPLINE=build/trapline tests/cli/test_cli.sh
#
# TRAPLINE: the binary. TOP: the source tree (default: two folders up).
# NO_TARGET=1 leaves out what runs a program under it.
set -u
export LC_ALL=C
unset TRAPLINE_OUT

top=$(cd "${TOP:-$(dirname "$0")/../..}" && pwd)
trapline=$(realpath "${TRAPLINE:?set it to the binary}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

n=0 failed=0
report() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' out err 2>/dev/null
		failed=1
	fi
}
skip() { # NAME REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
# Runs trapline; its status, output and messages in $status, out, err.
run() {
	"$trapline" "$@" >out 2>err </dev/null
	status=$?
}
# NAME STATUS PATTERN ARGS...: ends with STATUS, says one line that matches (an ERE).
refuses() {
	local name=$1 want=$2 pattern=$3
	shift 3
	run "$@"
	[ "$status" -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qE "^trapline: .*$pattern" err &&
		[ ! -s out ]
	report $? "$name"
}
# NAME STATUS PATTERN ARGS...: ends with STATUS, says something that matches.
says() {
	local name=$1 want=$2 pattern=$3
	shift 3
	run "$@"
	[ "$status" -eq "$want" ] && cat out err | grep -qE "$pattern"
	report $? "$name"
}

### what is mistyped
refuses "unknown long option: the nearest is suggested" 125 'did you mean --function\?' --functoin x ./p
refuses "record suggests too" 125 'did you mean --max-size\?' record --maxsize 3 ./p
refuses "an unknown option far from all" 125 'unknown option --qqqqqqqq; ' --qqqqqqqq
refuses "unknown short option" 125 'unknown option -z' -z ./p
refuses "one dash for two" 125 'did you mean --exact\?' -exact ./p
refuses "ambiguous abbreviation" 125 'may mean --source, --start-on' --s x ./p
refuses "missing value" 125 'option --output needs a value' record -o
refuses "superfluous value" 125 'option --exact takes no value' --exact=1 ./p
refuses "a command mistyped: 127 and the nearest" 127 'did you mean the command .trapline report' reprot
refuses "help on a mistyped command" 2 'did you mean record' help recrod
refuses "recover: unknown option" 2 'did you mean --output' recover --ouput x
refuses "recover without a folder" 2 'takes one folder' recover
says "recover of what is no spool" 1 '^trapline: ' recover ./nothing-here

### commands, -- and slashes
says "alone: how to get going" 0 'trapline -p PID' </dev/null
[ "$(wc -l <out)" -eq 5 ]
report $? "alone: five lines"
says "--version" 0 '^trapline [0-9]' --version
refuses "-- makes a command's name a program" 127 'list' -- list
refuses "a slash makes a command's name a program" 127 './report' ./report
refuses "record takes any word as its program" 127 'record' record record
refuses "nothing to record" 125 'nothing to record; give a program' record
refuses "options alone" 125 'nothing to record' -v
refuses "program and -p" 125 'not both' record -p $$ ./p
refuses "empty program name" 125 'empty' record ''
refuses "program not found" 127 'no-such-program-here' no-such-program-here
refuses "program not found, by path" 127 'no/such' ./no/such
echo 'plain text' >plain
refuses "not executable" 126 './plain' ./plain
refuses "a folder is not executable" 126 '/tmp' record /tmp

### values
for bad in 0x5 -1 1e3 5q 1..2 '' ' 5' inf nan 5ss 99999999999h; do
	refuses "bad duration '$bad'" 125 '--duration' record -d "$bad" ./p
done
refuses "a duration of 0" 125 'above 0' -d 0 ./p
refuses "bad delay" 125 '--delay x: not a time' --delay x ./p
for good in 5 0.2 .5 500ms 1m 20us 1h 100ns 2s; do
	refuses "good duration $good" 127 'no-such' record -d "$good" --delay "$good" ./no-such
done
for bad in 10Q -5 '' 0 M 1e6 99999999999T; do
	refuses "bad size '$bad'" 125 '--max-size' --max-size "$bad" ./p
done
for good in 4096 10M 10m 1.5G 64KiB 64kB; do
	refuses "good size $good" 127 'no-such' --max-size "$good" ./no-such
done
for bad in 0 -1 x 1.5 99999999999 ''; do
	refuses "bad depth '$bad'" 125 '--depth' --depth "$bad" ./p
done
refuses "bad dialect" 125 'there are 1997 and ids' --dialect 1998 ./p
refuses "bad pin" 125 'there are auto and never' --pin sometimes ./p
refuses "-o - is not a file" 125 '/dev/stdout' -o - ./p
refuses "empty output" 125 '--output needs a value' -o '' ./p
refuses "empty pattern" 125 'pattern' -f '' ./p

### processes
for bad in 0 99999999999 ''; do
	refuses "bad PID '$bad'" 125 '-p' record -p "$bad"
done
refuses "a PID that is gone" 125 'no such process' -p 4194305
refuses "a name that nobody has" 125 'no process has that name' -p no-such-name-here
cp "$(command -v sleep)" ./tl_sleeper_with_a_long_name
./tl_sleeper_with_a_long_name 100 &
first=$!
./tl_sleeper_with_a_long_name 101 &
second=$!
sleep 0.2 # until both have executed it
run -p tl_sleeper_with_a_long_name
[ "$status" -eq 125 ] && grep -q '^trapline: .*2 processes have that name' err &&
	grep -qE "^ *$first .*100" err && grep -qE "^ *$second .*101" err
report $? "a name with two matches lists them"
kill "$first" "$second"
wait 2>/dev/null
if [ "$(id -u)" -eq 0 ]; then
	refuses "a user that does not exist" 125 'no such user' -u no-such-user ./p
	refuses "-u while attaching" 125 '-u is for launching' -u root -p $$
else
	refuses "-u when not root" 125 'only root' -u root ./p
fi

### options of a later version
for option in --sample --auto '--budget 5' '-F 99' '--frequency 99' --wall '--name-from f=1'; do
	# shellcheck disable=SC2086
	refuses "$option is refused" 125 'is not available in this version; ' record $option ./p
done

### help
for command in '' record report dprofpp summarize diff merge export recover; do
	# shellcheck disable=SC2086
	run $command --help
	if grep -q 'not available in this version' err; then
		skip "$command --help fits a screen" 'a later version'
		continue
	fi
	if [ "$command" = dprofpp ]; then
		[ -s out ] # a bad profile is no matter: the original goes on after it
	else
		[ "$status" -eq 0 ] && [ -s out ] && [ ! -s err ]
	fi && [ "$(wc -l <out)" -le 24 ] && ! grep -qE '.{81}' out
	report $? "trapline $command --help fits a screen"
	[ -n "$command" ] || continue
	cp out direct
	run help $command
	cmp -s out direct
	report $? "help $command is $command --help"
done
run -q --help
[ "$status" -eq 0 ] && [ "$(wc -l <out)" -le 24 ] && ! grep -qE '.{81}' out
report $? "the live form's own help fits a screen"

### the table, --help and the man page name the same options
sed -n 's/^[[:space:]]*{ *"\([a-z-]*\)", .*/--\1/p' "$top/src/cli/record_options.c" | sort -u >table
run record --help
grep -oE -- '--[a-z][a-z-]+' out | sort -u >in_help
# `.Fl o , -output' and `.Fl -follow , -no-follow': long options begin with a second dash.
sed -n '/^\.Sh OPTIONS/,/^\.Ss Without a command/p' "$top/man/trapline.1" |
	grep -E '^(\.It )?\.?Fl ' | grep -oE -- ' -[a-z][a-z-]+' | sed 's/^ /-/' | sort -u >in_man
[ "$(wc -l <table)" -ge 30 ]
report $? "the table of options was found"
diff table in_help >out 2>err
report $? "--help names the options of the table, and no other"
diff table in_man >out 2>err
report $? "the man page names the options of the table, and no other"
# Whatever the help names is really known.
while read -r option; do
	run record "$option" --no-such-option-at-all
	! grep -q "unknown option $option" err
	report $? "$option is known"
done <in_help

### a target's end is ours
cat >target.c <<'E'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static int (*volatile call)(const char *);
int finish(const char *how)
{
	if (!strncmp(how, "sig", 3))
		raise(atoi(how + 3));
	return atoi(how);
}
int main(int argc, char **argv)
{
	call = finish;
	return argc > 1 ? call(argv[1]) : 0;
}
E
if [ "${NO_TARGET:-}" ] || ! ${CC:-cc} -O1 -g -o target target.c 2>err; then
	skip "exit statuses of a target" "${NO_TARGET:+NO_TARGET is set}${NO_TARGET:-no compiler}"
else
	for status_wanted in 0 1 7 42 255; do
		run record ./target $status_wanted
		[ "$status" -eq $status_wanted ]
		report $? "exit status $status_wanted"
	done
	for sig in 9 11 15 1; do
		{ run record ./target sig$sig; } 2>/dev/null
		[ "$status" -eq $((128 + sig)) ]
		report $? "death of signal $sig, as a shell sees it"
		# Exiting with 128+n would look the same to a shell, but not to waitpid().
		python3 -c 'import subprocess, sys
sys.exit(subprocess.run(sys.argv[2:], stderr=subprocess.DEVNULL).returncode != -int(sys.argv[1]))' \
			$sig "$trapline" record ./target sig$sig
		report $? "death of signal $sig, as waitpid() sees it"
	done
	run -q ./target 7
	[ "$status" -eq 7 ] && [ ! -s out ] && [ -s err ]
	report $? "the live form's report goes to stderr, its status is the target's"
	run -o /dev/null ./target
	[ "$status" -eq 0 ] && grep -q 'no report: /dev/null' err
	report $? "an output that cannot be read back: no report, no failure"
	run record -q -- ./target 5
	[ "$status" -eq 5 ] && [ ! -s out ] && [ ! -s err ]
	report $? "-- before the program; -q says nothing"
	run record ./target 6 --function
	[ "$status" -eq 6 ]
	report $? "options behind the program are its own"
	ls core* >out 2>/dev/null
	[ ! -s out ]
	report $? "no core of ours is left"
fi

echo "1..$n"
exit $failed
