package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func entry(i int) AuditEntry {
	return AuditEntry{Time: time.Unix(int64(i), 0).UTC(), Verb: "JobService.CancelJob", Who: "alice", From: "192.0.2.1:5", Result: "OK", What: map[string]string{"job_id": fmt.Sprint(i)}}
}

// lines returns the entries of a file, and fails on a partial one.
func lines(t *testing.T, path string) (out []AuditEntry) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var e AuditEntry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatalf("%s: line %q: %v", path, s.Text(), err)
		}
		out = append(out, e)
	}
	return out
}

func open(t *testing.T, path string, maxBytes int64, keep int) *AuditFile {
	t.Helper()
	f, err := OpenAuditFile(path, maxBytes, keep)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFullFilesAreKeptUpToANumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const each, keep, total = 10, 3, 100
	line, err := json.Marshal(entry(10))
	if err != nil {
		t.Fatal(err)
	}
	maxBytes := int64(each * (len(line) + 1))
	next := 10
	for range 2 { // the second run appends to the file
		l := NewAuditLog(open(t, path, maxBytes, keep), slog.Default())
		for range (total - 10) / 2 {
			l.Add(entry(next))
			next++
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got []AuditEntry
	for i := keep; i >= 1; i-- {
		got = append(got, lines(t, fmt.Sprintf("%s.%d", path, i))...)
	}
	got = append(got, lines(t, path)...)
	if len(got) < keep*each || len(got) > (keep+1)*each {
		t.Errorf("%d entries are kept", len(got))
	}
	for i, e := range got {
		if want := fmt.Sprint(total - len(got) + i); e.What["job_id"] != want {
			t.Fatalf("entry %d is of job %s, want %s", i, e.What["job_id"], want)
		}
	}
	if _, err := os.Stat(fmt.Sprintf("%s.%d", path, keep+1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("more than %d full files are kept: %v", keep, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() > maxBytes {
		t.Errorf("the file is %v, %v", info, err)
	}
}

func TestConcurrentAuditLinesDoNotInterleave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := NewAuditLog(open(t, path, 0, 0), slog.Default())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				l.Add(entry(i))
			}
		})
	}
	all.Wait()
	if n := len(lines(t, path)); n != 400 {
		t.Errorf("%d lines, want 400", n)
	}
}

// TestFullDiskMakesTheAuditLogUnready uses a device that is always full.
func TestFullDiskMakesTheAuditLogUnready(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	f := open(t, path, 0, 0)
	l := NewAuditLog(f, slog.New(slog.NewTextHandler(&told, nil)))
	if err := l.Ready(); err != nil {
		t.Errorf("before anything failed: %v", err)
	}
	l.Add(entry(1))
	l.Add(entry(2))
	if err := l.Ready(); !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "the audit log cannot be written: ") {
		t.Errorf("on a full disk: %v", err)
	}
	for _, want := range []string{"job_id:1", "job_id:2", "who=alice"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the tracker's log lacks %s:\n%s", want, told.String())
		}
	}
	if err := errors.Join(os.Remove(path), f.Close()); err != nil {
		t.Fatal(err)
	}
	f.file = nil // the disk has room again
	if err := l.Ready(); err != nil {
		t.Fatal(err)
	}
	l.Add(entry(3))
	got := lines(t, path)
	if len(got) != 2 || got[0].Verb != "audit.resume" || !strings.HasPrefix(got[0].Message, "2 lines before this one") {
		t.Errorf("afterwards there is %v", got)
	}
}

func TestFailedWriteLeavesNoHalfLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := open(t, path, 0, 0)
	if _, err := f.Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.file.Close(); err != nil {
		t.Fatal(err)
	}
	// The file is read-only, so writes fail. Later lines must be complete.
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.file = file
	if _, err := f.Write([]byte("{}\n")); err == nil {
		t.Error("a file that is open for reading was written")
	}
	f.file = nil
	if _, err := f.Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); string(b) != "{}\n{}\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
}
