package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/board"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/boards"
)

// onBoard is an emulated board with a plan for candidates of one workload.
type onBoard struct {
	*boards.Board
	plan Plan
}

// spoilt is a candidate whose source may be modified: text is inserted after a match behind its symbol.
type spoilt struct {
	name  string
	error tilthv1.ErrorClass
	// want is part of the expected message.
	want            string
	expression, put string
}

// asIs returns a correct candidate.
func asIs(name string) spoilt { return spoilt{name: name, error: none} }

// newOnBoard starts an emulated board and builds its candidates in one module, because each transfer takes long.
func newOnBoard(t *testing.T, candidates []spoilt) *onBoard {
	t.Helper()
	d, err := boards.Find("mps2-an500")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(d.Command[0]); err != nil {
		t.Skipf("there is no emulator of boards: %v: run scripts/packages.sh bare", err)
	}
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	by := board.Backend{}
	on, err := by.Target(d.Target, 0)
	if err != nil {
		t.Fatal(err)
	}
	there, err := boards.Open(t.Context(),
		boards.Config{Description: d, Machine: on, Toolchain: tc, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	w := kerneltest.Product(t, 8, 12, 16)
	build := builds(t, tc)
	reference, err := by.Reference(w, on)
	plan := Plan{Threads: 1, Seed: 1, Device: by.Device(on), Line: there.Line, BestSeconds: 1e-3, Reference: build(reference, err, "reference.so"),
		Harness: build(by.Harness(on), nil, "harness")}
	var printed []backend.Printed
	for k, c := range candidates {
		p, err := by.Print(fmt.Sprintf("k%d", k), backend.Kernel{ID: c.name, Schedule: schedule.New(w)}, on)
		if err != nil {
			t.Fatal(err)
		}
		printed, plan.Kernels = append(printed, p), append(plan.Kernels, c.name)
	}
	module, err := by.Module(w, printed, on)
	for k, c := range candidates {
		before := module.Sources[0].Text
		what := regexp.MustCompile(fmt.Sprintf(`(?m)(\bk%d%s)`, k, c.expression))
		module.Sources[0].Text = what.ReplaceAllString(before, "${1}"+c.put)
		if c.error != none && module.Sources[0].Text == before {
			t.Fatalf("%s is as it was", c.name)
		}
	}
	plan.Candidates = []string{build(module, err, "module")}
	return &onBoard{there, plan}
}

// measure measures the candidates on the board.
func (b *onBoard) measure(t *testing.T) map[string]Outcome {
	t.Helper()
	outcomes := map[string]Outcome{}
	if err := Measure(t.Context(), b.plan, func(o Outcome) { outcomes[o.Kernel] = o }); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// TestCandidatesOnABoardCostOnlyThemselves measures candidates on an emulated board, among them one that faults, one
// that hangs, and one that needs more memory than the board has.
func TestCandidatesOnABoardCostOnlyThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: measures on an emulated board")
	}
	const body, workspace = `_run\(.*\{$`, `_run, `
	cases := []spoilt{
		asIs("right"),
		{"faulty", crash, "the processor faults at", body, ` *(volatile int *)4 = 1;`},
		{"hanging", timeout, "runs longer than 2 s of the board's clock", body, ` for (;;) __asm__ volatile("");`},
		{"large", crash, "16777152 for all", workspace, "20000000 + "},
		asIs("right again"),
	}
	b := newOnBoard(t, cases)
	outcomes := b.measure(t)
	for _, c := range cases {
		o := outcomes[c.name]
		if !strings.Contains(o.Message, c.want) || o.Error != c.error || (len(o.Samples) > 0) != (c.error == none) {
			t.Errorf("%s: %v, %q, samples %v", c.name, o.Error, o.Message, o.Samples)
		}
	}
	if first, second := outcomes["right"], outcomes["right again"]; first.Error == none && second.Error == none && first.Samples[0] != second.Samples[0] {
		t.Errorf("the same takes %g s, then %g s", first.Samples[0], second.Samples[0])
	}
	if b.Resets() > 0 {
		t.Errorf("the board was reset %d times", b.Resets())
	}
}

// TestBoardThatIsLostCostsNoCandidate covers a board that stops answering and a connection that breaks during a
// measurement. Each time the candidate must be measured again.
func TestBoardThatIsLostCostsNoCandidate(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: measures on an emulated board")
	}
	b := newOnBoard(t, []spoilt{asIs("right")})
	opened := 0
	whole := b.plan.Line
	b.plan.Line = func(ctx context.Context) (*os.File, error) {
		opened++
		if opened%2 == 0 { // the processes that measure and examine connect on the second attempt
			return whole(ctx)
		}
		line, err := whole(ctx)
		if err != nil {
			return nil, err
		}
		defer line.Close()
		return cut(t, line), nil
	}
	if o := b.measure(t)["right"]; o.Error != none || len(o.Samples) == 0 {
		t.Errorf("a board that was lost and found: %v, %q", o.Error, o.Message)
	}
	b.plan.Line = func(ctx context.Context) (*os.File, error) {
		line, err := whole(ctx)
		if err != nil {
			return nil, err
		}
		defer line.Close()
		return cut(t, line), nil
	}
	err := Measure(t.Context(), b.plan, func(o Outcome) { t.Errorf("%s is said to be %v: %s", o.Kernel, o.Error, o.Message) })
	if !errors.As(err, new(*lostError)) {
		t.Errorf("a board that is lost each time: %v", err)
	}
}

// cut returns a link that ends after a number of frames.
func cut(t *testing.T, line *os.File) *os.File {
	t.Helper()
	const limit = 2000
	far, err := unix.FcntlInt(line.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.SetNonblock(far, true), unix.SetNonblock(ends[1], true)); err != nil {
		t.Fatal(err)
	}
	board, harness := os.NewFile(uintptr(far), "board"), os.NewFile(uintptr(ends[1]), "harness")
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(harness, board) // until the deadline
	}()
	go func() {
		_, _ = io.CopyN(board, harness, limit) // the harness may end first
		_ = board.SetReadDeadline(time.Unix(1, 0))
		<-answers
		_, _ = harness.Close(), board.Close()
	}()
	return os.NewFile(uintptr(ends[0]), "link")
}
