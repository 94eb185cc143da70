package operators

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeLibrary writes a program that answers like a library.
func fakeLibrary(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLibraryIsAskedAndTimed(t *testing.T) {
	p, err := startPeer(t.Context(), 3, fakeLibrary(t, `
echo "peer fake 1.2 on $OMP_NUM_THREADS"
while read -r verb rest; do
	case "$verb $rest" in
	"prepare product f32 1 2 3") echo "ready jit:fast" ;;
	prepare*) echo "unsupported no such type" ;;
	"time 0.25") echo "samples 0.5 2e-06" ;;
	"time 1") echo "samples 0.5 -1" ;;
	time*) echo samples ;;
	esac
done`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "fake 1.2 on 3" {
		t.Errorf("it is %s", p.Name)
	}
	if by, err := p.prepare("product f32 1 2 3"); err != nil || by != "jit:fast" {
		t.Errorf("%s, %v", by, err)
	}
	if samples, err := p.time(250 * time.Millisecond); err != nil || !slices.Equal(samples, []float64{0.5, 2e-6}) {
		t.Errorf("%v, %v", samples, err)
	}
	if _, err := p.prepare("product q9 1 2 3"); !errors.As(err, new(unsupported)) || !strings.Contains(err.Error(), "no such type") {
		t.Errorf("a type that it does not know: %v", err)
	}
	for d, want := range map[time.Duration]string{time.Second: `"-1" for seconds`, 2 * time.Second: "no samples"} {
		if _, err := p.time(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", d, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLibraryThatIsNotThereOrSaysNothingIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ program, want string }{
		"not there": {filepath.Join(t.TempDir(), "none"), "'scripts/peers.sh' builds its program"},
		"silent":    {fakeLibrary(t, "exit 0"), "library: it ended without an answer"},
		"another":   {fakeLibrary(t, "echo hello"), `it answers "hello"`},
		"endless":   {fakeLibrary(t, "echo peer x; tr '\\0' x </dev/zero"), "token too long"},
	} {
		p, err := startPeer(t.Context(), 1, c.program)
		if err == nil {
			_, err = p.prepare("product f32 1 1 1")
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
