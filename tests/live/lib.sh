# tests/live/lib.sh - what live tests are made of.
#
# tests/run-tests runs each test_* function of a *.test file in a process group
# and an empty folder of its own, with set -e: the first command that fails
# fails the test. It provides
#	TRAPLINE	the binary under test
#	FIXTURES BUILD	where fixtures and the build are
#	TESTS		this folder's parent
#	ROUNDS		how often what depends on a race is repeated: 3 is quick

PATH=$TESTS:$PATH

# What a test says goes to its log even where a command's stderr is redirected.
exec 9>&2

# skip REASON: this machine cannot run the test.
skip()
{
	echo "skip: $*"
	exit 77
}

fail()
{
	echo "$*" >&9
	exit 1
}

need()
{
	local tool

	for tool; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
}

# expect_status STATUS COMMAND...
expect_status()
{
	local want=$1 got=0

	shift
	"$@" 9>&- || got=$?
	[ "$got" = "$want" ] || fail "status $got instead of $want: $*"
}

# expect_text PATTERN FILE: a line of FILE matches the extended expression.
expect_text()
{
	grep -Eq -- "$1" "$2" || {
		sed 's/^/	/' "$2" >&9
		fail "no line of $2 matches: $1"
	}
}

expect_empty()
{
	[ ! -s "$1" ] || {
		sed 's/^/	/' "$1" >&9
		fail "$1 is not empty"
	}
}

# record [OPTION...] -- PROGRAM [ARG...]: an exact profile in tmon.out; the
# program's own output in out, truth in truth; what trapline says in err.
record()
{
	rm -f tmon.out truth
	"$TRAPLINE" record --exact -q -o tmon.out "$@" 3>truth >out 2>err || {
		cat err >&9
		fail "trapline record $*: it failed"
	}
	expect_empty err
}

# counts_agree: the profile says what the program counted itself. Fixtures have no
# overloads and print names without parameters.
counts_agree()
{
	tmon-counts tmon.out | sed 's/([^ ]*) / /' >counts
	compare-counts truth counts
}

# wait_for PATTERN FILE: until FILE has such a line, 10 s at most.
wait_for()
{
	local i

	for ((i = 0; i < 500; i++)); do
		grep -Eq -- "$1" "$2" 2>/dev/null && return
		sleep 0.02
	done
	fail "waited 10 s for '$1' in $2"
}

# now_ms: the wall clock, to bound how long something takes.
now_ms()
{
	echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# one_cpu COMMAND...: bound to the first CPU we may use.
one_cpu()
{
	taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')" "$@"
}
