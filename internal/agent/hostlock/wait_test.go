package hostlock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// heldIn is the environment variable that makes this program hold the lock in a folder, as an agent of the farm of
// heldFor.
const (
	heldIn  = "TILTH_TEST_HOLD"
	heldFor = "TILTH_TEST_FARM"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(heldIn)
	if dir == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := hold(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hold holds the lock for timing until standard input ends.
func hold(dir string) error {
	l, err := New(dir)
	if err != nil {
		return err
	}
	if _, err := l.JoinFarm(os.Getenv(heldFor)); err != nil {
		return err
	}
	release, err := l.Time(context.Background())
	if err != nil {
		return err
	}
	defer release()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// announcing returns a lock in a new folder that logs waits.
func announcing(t *testing.T) (l *Lock, log *bytes.Buffer) {
	t.Helper()
	l, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	l.Announce(slog.New(slog.NewTextHandler(log, nil)))
	l.waits.first, l.waits.after = 0, 0
	return l, log
}

// holdElsewhere starts a process that holds the lock until the test ends, and returns its PID.
func holdElsewhere(t *testing.T, dir string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "another")
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
	l, log := announcing(t)
	holder := fmt.Sprintf("process %d (hostlock.test another)", holdElsewhere(t, filepath.Dir(l.main)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Compute(ctx); err == nil || !strings.Contains(err.Error(), "held by "+holder+" since ") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "waiting for the machine") || !strings.Contains(log.String(), holder) {
		t.Errorf("the log has %q", log.String())
	}
}

// TestWaitingForADeviceNamesWhoTimesOnIt checks that processes that only compute are not named.
func TestWaitingForADeviceNamesWhoTimesOnIt(t *testing.T) {
	l, _ := announcing(t)
	release, err := l.Compute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if holders := l.On("GPU-1").Holders(); len(holders) > 0 {
		t.Errorf("who computes keeps a device: %v", holders)
	}
	release()
	pid := holdElsewhere(t, filepath.Dir(l.main))
	for _, device := range []*Lock{l, l.On("GPU-1")} {
		if holders := device.Holders(); len(holders) != 1 || holders[0].PID != pid {
			t.Errorf("held by %v, want process %d", holders, pid)
		}
	}
}

func TestAgentsOfOneFarmDoNotBlockEachOther(t *testing.T) {
	t.Setenv(heldFor, "tracker:9190")
	for tracker, blocks := range map[string]bool{"tracker:9190": false, "other:9190": true} {
		l, log := announcing(t)
		leave, err := l.JoinFarm(tracker)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		holdElsewhere(t, filepath.Dir(l.main))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := l.Compute(ctx); err == nil {
			t.Error("computed beside a process that times")
		}
		if _, last := l.Waited(); len(last) > 0 != blocks || strings.Contains(log.String(), "waiting") != blocks {
			t.Errorf("an agent of %s was blocked by %v, and the log has %q", tracker, last, log.String())
		}
	}
}

func TestOwnLockIsNotReported(t *testing.T) {
	l, log := announcing(t)
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

// TestLongWaitsFail checks the limit of a wait, and what is known of it meanwhile and afterwards.
func TestLongWaitsFail(t *testing.T) {
	l, _ := announcing(t)
	var expired error
	l.Limit(0, func(err error) { expired = err })
	before := time.Now().Add(-time.Second)
	pid := holdElsewhere(t, filepath.Dir(l.main))
	if err := l.Refused(); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d ", pid)) {
		t.Errorf("refused by %v", err)
	}
	if _, err := l.Compute(t.Context()); !errors.Is(err, ErrInUse) || expired == nil {
		t.Errorf("%v and %v, want an error", err, expired)
	}
	waited, last := l.Waited()
	if waited <= 0 || len(last) != 1 || last[0].PID != pid || last[0].Since.Before(before) || last[0].Since.After(time.Now()) || len(l.Blocked()) > 0 {
		t.Errorf("waited %v for %v, and now for %v", waited, last, l.Blocked())
	}
}
