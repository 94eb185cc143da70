package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// convertEnv makes a test binary convert a store until it is killed. It holds the places, one per line.
const convertEnv = "TILTH_TEST_CONVERT"

// printing is a target that prints a line before and after each transaction.
type printing struct{ records.Target }

// Put implements records.Target.
func (s printing) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	fmt.Println("puts")
	defer fmt.Println("has put")
	return s.Target.Put(ctx, kind, rows, mark)
}

// process implements tester in the converting process.
type process struct{}

// Helper implements tester.
func (process) Helper() {}

// Context implements tester.
func (process) Context() context.Context { return context.Background() }

// Cleanup implements tester.
func (process) Cleanup(func()) {}

// Fatal implements tester.
func (process) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf implements tester.
func (process) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// converting runs first in TestMain. It returns true in a child process that has finished its work.
func converting() bool {
	places := strings.Split(os.Getenv(convertEnv), "\n")
	if len(places) != 4 {
		return false
	}
	_, err := convert(context.Background(), process{}, place{places[0], places[1]}, place{places[2], places[3]},
		func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			return small{a, 100}, printing{b}
		})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// convertKilled converts a store in a child process and kills it after a number of lines. done reports whether it
// finished first.
func convertKilled(t *testing.T, from, to place, lines int) (done bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), convertEnv+"="+strings.Join([]string{from.choice, from.path, to.choice, to.path}, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		if count++; count == lines {
			_ = cmd.Process.Kill()
		}
	}
	err = cmd.Wait()
	if err != nil && count < lines {
		t.Fatal(err)
	}
	return err == nil
}

func TestKilledConversionResumes(t *testing.T) {
	for _, kinds := range [][]string{{"bolt", "postgres"}, {"postgres", "bolt"}} {
		t.Run(kinds[0], func(t *testing.T) {
			from, to := newPlace(t, kinds[0], t.TempDir()), newPlace(t, kinds[1], t.TempDir())
			from.use(t, func(s records.Store) error {
				_, _, err := s.Import(t.Context(), storetest.Numbered(storetest.ImportSize, io.EOF))
				return err
			})
			h := &history{}
			want := from.content(t, h)
			kills := 0
			for lines := 1; !convertKilled(t, from, to, lines); lines = lines%13 + 3 {
				kills++
			}
			if kills < 3 {
				t.Errorf("it was killed %d times", kills)
			}
			same(t, to.content(t, h), want)
		})
	}
}
