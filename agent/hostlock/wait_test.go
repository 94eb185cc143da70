package hostlock

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// heldIn is the environment variable that makes TestHold another process's holder of the lock in that folder.
const heldIn = "TILTH_TEST_HOLD"

func TestHold(t *testing.T) {
	dir := os.Getenv(heldIn)
	if dir == "" {
		t.Skip("this is run by the tests of waiting, in a process of its own")
	}
	l, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	release, err := l.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that waits
}

// holdElsewhere lets another process time something until the test ends, and returns its number.
func holdElsewhere(t *testing.T, dir string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHold$")
	cmd.Env = append(os.Environ(), heldIn+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process said %q: %v", line, err)
	}
	return cmd.Process.Pid
}

func TestWaitingNamesTheProcessThatHasTheLock(t *testing.T) {
	l, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l.Announce(slog.New(slog.NewTextHandler(&log, nil)))
	l.notices.first = 0
	holder := fmt.Sprintf("process %d (hostlock.test -test.run=^TestHold$)", holdElsewhere(t, filepath.Dir(l.main)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = l.Compute(ctx); err == nil || !strings.Contains(err.Error(), "which "+holder+" keeps") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "waiting for the machine") || !strings.Contains(log.String(), holder) {
		t.Errorf("the log has %q", log.String())
	}
}

func TestWaitingForOneselfIsNoNews(t *testing.T) {
	l, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l.Announce(slog.New(slog.NewTextHandler(&log, nil)))
	l.notices.first = 0
	release, err := l.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Compute(ctx); err == nil || strings.Contains(err.Error(), "process") || log.Len() > 0 {
		t.Errorf("got %v and the log %q", err, log.String())
	}
}
