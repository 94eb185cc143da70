package macros

import (
	"fmt"
	"strings"
	"testing"
)

// faults lists faulty kernels with their reports. The lines of a body are numbered from 2. Each block has 64 threads,
// x and y have 256 numbers, y is written, and s and t have 64 in shared memory.
var faults = []struct {
	name   string
	blocks int
	body   []string
	want   string
}{
	{"a write of what another thread reads", 1, []string{
		"STORE(s, TID, 1);",
		"BARRIER();",
		"STORE(y, TID, LOAD(s, (TID + 63) % 64));",
		"STORE(s, TID, 2);",
	}, "race on s[62]: thread 62 writes it (line 5), and thread 63 read it (line 4), with no barrier between"},
	{"a read of what another thread wrote", 1, []string{
		"STORE(s, TID, 1);",
		"STORE(y, TID, LOAD(s, TID == 0 ? 0 : TID - 1));",
	}, "race on s[0]: thread 1 reads it (line 3), and thread 0 wrote it (line 2), with no barrier between"},
	{"two writes of an element", 1, []string{
		"STORE(s, TID / 2, TID);",
	}, "race on s[0]: thread 1 writes it (line 2), and thread 0 wrote it (line 2), with no barrier between"},
	{"a write of what two others have read", 1, []string{
		"if (TID == 0) STORE(s, 0, 1);",
		"BARRIER();",
		"if (TID == 1 || TID == 40) STORE(y, TID, LOAD(s, 0));",
		"WARP_BARRIER();",
		"if (TID == 2) STORE(s, 0, 2);",
	}, "race on s[0]: thread 2 writes it (line 6), and thread 40 read it (line 4), with no barrier between"},
	{"a write of what oneself and another thread have read", 1, []string{
		"if (TID == 0) STORE(s, 0, 1);",
		"BARRIER();",
		"if (TID < 2) STORE(y, TID, LOAD(s, 0));",
		"if (TID == 0) STORE(s, 0, 2);",
	}, "race on s[0]: thread 0 writes it (line 5), and thread 1 read it (line 4), with no barrier between"},
	{"a write of what two of the own warp and one of another have read", 1, []string{
		"if (TID == 0) STORE(s, 0, 1);",
		"BARRIER();",
		"if (TID == 40 || TID == 41 || TID == 1) STORE(y, TID, LOAD(s, 0));",
		"WARP_BARRIER();",
		"if (TID == 42) STORE(s, 0, 2);",
	}, "race on s[0]: thread 42 writes it (line 6), and thread 1 read it (line 4), with no barrier between"},
	{"a barrier of the warp where threads of others read", 1, []string{
		"STORE(s, TID, 1);",
		"WARP_BARRIER();",
		"STORE(y, TID, LOAD(s, (TID + 63) % 64));",
	}, "race on s[63]: thread 0 reads it (line 4), and thread 63 wrote it (line 2), with no barrier between"},
	{"a shuffle in place of a barrier", 1, []string{
		"STORE(s, TID, 1);",
		"float v = SHUFFLE_XOR(1.0f, 1);",
		"STORE(y, TID, v + LOAD(s, TID ^ 1));",
	}, "race on s[30]: thread 31 reads it (line 4), and thread 30 wrote it (line 2), with no barrier between"},
	{"an index behind a shared array", 1, []string{
		"STORE(s, TID + 1, 1);",
	}, "thread 63 uses element 64 of s, which has 64 (line 2)"},
	{"an index before a global array", 1, []string{
		"STORE(y, TID, LOAD(x, TID - 3));",
	}, "thread 0 uses element -3 of x, which has 256 (line 2)"},
	{"a vector that goes beyond an array", 1, []string{
		"V(float, 4) v = LOADV(float, 4, x, 4 * TID + 4);",
		"STORE(y, TID, v[0]);",
	}, "thread 63 uses elements 256 to 259 of x, which has 256 (line 2)"},
	{"a vector that is not aligned", 1, []string{
		"V(float, 4) v = LOADV(float, 4, x, 2 * TID);",
		"STORE(y, TID, v[0]);",
	}, "thread 1 uses 16 bytes at element 2 of x, which are not aligned to their size (line 2)"},
	{"a read of what nobody wrote", 1, []string{
		"if (TID != 5) STORE(s, TID, 1);",
		"BARRIER();",
		"STORE(y, TID, LOAD(s, 63 - TID));",
	}, "thread 58 reads s[5], which nobody wrote (line 4)"},
	{"a read of what only a block before wrote", 2, []string{
		"if (BID == 0) STORE(s, TID, 1);",
		"BARRIER();",
		"STORE(y, BID * 64 + TID, LOAD(s, TID));",
	}, "thread 38 reads s[38], which nobody wrote (line 4)"},
	{"a copy that its own thread has not waited for", 1, []string{
		"COPY_ASYNC(4, s, TID, x, TID, 1);",
		"COPY_COMMIT();",
		"STORE(y, TID, LOAD(s, TID));",
	}, "thread 0 reads s[0] (line 4), and thread 0 has not waited for its copy of it (line 2)"},
	{"a copy that is the latest of two groups", 1, []string{
		"COPY_ASYNC(4, s, TID, x, TID, 1);",
		"COPY_COMMIT();",
		"COPY_ASYNC(4, t, TID, x, TID, 1);",
		"COPY_COMMIT();",
		"COPY_WAIT(1);",
		"STORE(y, TID, LOAD(s, TID) + LOAD(t, TID));",
	}, "thread 0 reads t[0] (line 7), and thread 0 has not waited for its copy of it (line 4)"},
	{"a copy that only another thread has waited for", 1, []string{
		"COPY_ASYNC(4, s, TID, x, TID, 1);",
		"COPY_COMMIT();",
		"COPY_WAIT(0);",
		"STORE(y, TID, LOAD(s, TID == 0 ? 0 : TID - 1));",
	}, "race on s[0]: thread 1 reads it (line 5), and thread 0 wrote it (line 2), with no barrier between"},
	{"a write of what is being copied to", 1, []string{
		"COPY_ASYNC(4, s, TID, x, TID, 1);",
		"STORE(s, TID, 1);",
	}, "thread 0 writes s[0] (line 3), and thread 0 has not waited for its copy of it (line 2)"},
	{"a barrier that threads leave out", 1, []string{
		"if (TID < 60) {",
		"  BARRIER();",
		"}",
	}, "divergence: thread 0 waits at the barrier of line 3 with 59 others, but thread 60 of the same block has ended"},
	{"two barriers in the branches of a condition", 1, []string{
		"if (TID < 60) {",
		"  BARRIER();",
		"} else {",
		"  BARRIER();",
		"}",
	}, "divergence: thread 60 is at the barrier of line 5, but 60 others of the block wait at that of line 3"},
	{"a shuffle that lanes leave out", 1, []string{
		"float v = 1;",
		"if (TID < 20) v = SHUFFLE_DOWN(v, 1);",
		"BARRIER();",
	}, "divergence: thread 0 waits at the shuffle of line 3 with 19 others, but thread 20 of the same warp waits at the barrier of line 4"},
	{"a shuffle from a lane that no warp has", 1, []string{
		"STORE(y, TID, SHUFFLE(1.0f, TID % 32 + 1));",
	}, "thread 31 wants the value of lane 32 of its warp (line 2)"},
	{"different collectives of a warp", 1, []string{
		"if (TID % 2 == 0) WARP_BARRIER();",
		"else WARP_BARRIER();",
	}, "divergence: thread 1 is at the warp's barrier of line 3, but 1 others of the warp wait at the warp's barrier of line 2"},
	{"a global element that two blocks write", 2, []string{
		"STORE(y, TID, 1);",
	}, "race on y[37]: thread 37 writes it (line 2), and thread 37 of block 0 wrote it (line 2) in the same launch"},
	{"a global element that another block reads", 2, []string{
		"if (BID == 0) STORE(y, TID, LOAD(y, 128 + TID));",
		"else STORE(y, 128 + TID, 1);",
	}, "race on y[165]: thread 37 writes it (line 3), and thread 37 of block 0 read it (line 2) in the same launch"},
	{"a global element that is read behind no barrier", 1, []string{
		"STORE(y, TID, 1);",
		"STORE(y, 64 + TID, LOAD(y, TID ^ 1));",
	}, "race on y[1]: thread 1 writes it (line 2), and thread 0 read it (line 3), with no barrier between"},
	{"an addition to what another thread reads", 1, []string{
		"ATOMIC_ADD(y, 0, 1);",
		"if (TID == 63) STORE(y, 1, LOAD(y, 0));",
	}, "race on y[0]: thread 63 reads it (line 3), and several threads added to it (line 2), with no barrier between"},
	{"an addition by oneself behind that of another thread", 1, []string{
		"if (TID < 2) ATOMIC_ADD(y, 0, 1);",
		"if (TID == 1) STORE(y, 1, LOAD(y, 0));",
	}, "race on y[0]: thread 1 reads it (line 3), and several threads added to it (line 2), with no barrier between"},
	{"a row of a matrix that is not aligned", 1, []string{
		"STORE(s, TID, 1);",
		"BARRIER();",
		"uint32_t r[1];",
		"LDMATRIX_X1(r, s, TID % 32);",
	}, "thread 33 uses 16 bytes at element 1 of s, which are not aligned to their size (line 5)"},
}

// mistaken returns a kernel of faults.
func mistaken(name string, body []string) string {
	return "TILTH_KERNEL(" + name + ", 64)(GLOBAL const float *restrict x, GLOBAL float *restrict y) { GLOBAL_ARRAY(x, 256); GLOBAL_ARRAY(y, 256); " +
		"SHARED_ARRAY(float, s, 64); SHARED_ARRAY(float, t, 64);\n" + strings.Join(body, "\n") + "\n}\n"
}

// TestMistakesAreReported compiles all kernels into one program, which runs each in a separate process and writes a
// line with the process's status after its report.
func TestMistakesAreReported(t *testing.T) {
	var kernels, thunks, launches strings.Builder
	for k, f := range faults {
		kernels.WriteString("#line 1\n" + mistaken(fmt.Sprintf("k%d", k), f.body))
		fmt.Fprintf(&thunks, "THUNK(k%d, a[0], a[1])\n", k)
		fmt.Fprintf(&launches, "  if (!fork()) {\n    LAUNCH(k%d, 64, %d, 1, (OUT(y, 256)), x, y);\n    _exit(0);\n  }\n"+
			"  wait(&status);\n  fprintf(stderr, \"status %%d\\n\", status);\n", k, f.blocks)
	}
	host := "#include <stdio.h>\n#include <sys/wait.h>\n" + thunks.String() + "int main(void) {\n  int status;\n" +
		"  float *x = numbers(256), *y = room(256 * sizeof *y);\n" + launches.String() + "  return 0;\n}\n"
	out, err := clang.run(t, kernels.String(), host, 1)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 2*len(faults) {
		t.Fatalf("%d lines of %d mistakes:\n%s", len(lines), len(faults), out)
	}
	for k, f := range faults {
		report, status := lines[2*k], lines[2*k+1]
		if want := fmt.Sprintf("gpu-sim: kernel k%d, block %d: %s", k, f.blocks-1, f.want); report != want || status == "status 0" {
			t.Errorf("%s: %s, and it wrote\n%s\nwant\n%s", f.name, status, report, want)
		}
	}
}

func TestMistakesOfBlocksOnTwoWorkersAreReportedOnce(t *testing.T) {
	const host = `THUNK(k, a[0], a[1])
int main(int argc, char **argv) {
  float *x = numbers(256), *y = room(256 * sizeof *y);
  LAUNCH(k, 64, 16, argc, (OUT(y, 256)), x, y);
  return 0;
}
`
	out, err := clang.run(t, mistaken("k", []string{"STORE(y, (BID + TID) % 64, 1);"}), host, 2)
	if err == nil || !strings.HasPrefix(out, "gpu-sim: kernel k, block ") || !strings.HasSuffix(out, "wrote it (line 2) in the same launch") || strings.Contains(out, "\n") {
		t.Errorf("%v, and it wrote\n%s", err, out)
	}
}
