package storesync_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/storesync"
)

// syncEnv makes a test binary exchange records until it is killed. It holds two file names, one per line.
const syncEnv = "TILTH_TEST_SYNC"

// pausing is a store that pauses before, during and after each batch.
type pausing struct{ storesync.Store }

func (s pausing) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	pause("adds")
	defer pause("has added")
	next := storesync.Each(batch)
	return s.Store.Import(ctx, func() (*tilthv1.Record, error) {
		r, err := next()
		if errors.Is(err, io.EOF) {
			pause("has handed in all")
		}
		return r, err
	})
}

// pause prints a line and waits until the parent process answers it.
func pause(line string) {
	fmt.Println(line)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestMain(m *testing.M) {
	if files := strings.Split(os.Getenv(syncEnv), "\n"); len(files) == 2 {
		if err := syncFiles(files[0], files[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func syncFiles(from, to string) error {
	source, err := bolt.OpenReadOnly(from, bolt.Options{})
	if err != nil {
		return err
	}
	target, err := bolt.Open(to, bolt.Options{})
	if err != nil {
		return errors.Join(err, source.Close())
	}
	_, err = storesync.Sync(context.Background(), storesync.Store{Measurements: source}, pausing{storesync.Store{Measurements: target}}, storesync.Options{})
	return errors.Join(err, target.Close(), source.Close())
}

// syncKilled syncs records in a child process and kills it at a pause, given its number. done reports whether it
// finished first.
func syncKilled(t *testing.T, from, to string, last int) (done bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), syncEnv+"="+from+"\n"+to)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pauses := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if pauses++; pauses == last {
			err = cmd.Process.Kill()
		} else {
			_, err = in.Write([]byte{0})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err = cmd.Wait(); err != nil && pauses < last {
		t.Fatal(err)
	}
	return err == nil
}

func TestKilledExchangeResumes(t *testing.T) {
	n := int64(storetest.QuickOr(9000, 13000)) // three or four batches
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	source, err := bolt.Open(from, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	_, _, err = source.Import(t.Context(), func() (*tilthv1.Record, error) {
		if at++; at > n {
			return nil, io.EOF
		}
		return numbered(at), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := list(t, source)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for last := 1; !syncKilled(t, from, to, last); last = last%5 + 1 {
		kills++
	}
	if kills < 3 {
		t.Errorf("it was killed %d times", kills)
	}
	target, err := bolt.OpenReadOnly(to, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	got := list(t, target)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !proto.Equal(got[i], want[i]) {
			t.Fatalf("record %d is %v, want %v", i, got[i], want[i])
		}
	}
}
