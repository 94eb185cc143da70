package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// deviceBuild returns a kernel for a GPU.
func deviceBuild(t testing.TB, text string) Build {
	t.Helper()
	host, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	return Build{Target: host, Form: Device, Sources: []File{{Name: "k.c", Text: text}},
		Flags: []string{"--target=nvptx64-nvidia-cuda", "-nogpulib", "-march=sm_80", "-O1", "-S"}}
}

// TestCodeForADeviceIsFinished: what clang makes is handed on, and what comes back is kept.
func TestCodeForADeviceIsFinished(t *testing.T) {
	tc, err := Find(t.Context(), os.Getenv(Variable))
	if err != nil {
		t.Fatal(err)
	}
	b, path := deviceBuild(t, "__attribute__((nvptx_kernel)) void k(float *x) { *x = 1; }"), filepath.Join(t.TempDir(), "k")
	b.Finish = func(code []byte) ([]byte, error) { return append([]byte("head\n"), code...), nil }
	if err := tc.Build(t.Context(), b, path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "head\n") || !strings.Contains(string(text), ".entry k(") {
		t.Errorf("the file is %q, %v", text, err)
	}
	var failure *Error
	b.Finish = func([]byte) ([]byte, error) { return nil, errors.New("too long") }
	if err := tc.Build(t.Context(), b, path); !errors.As(err, &failure) || failure.Kind != Rejected || failure.Message != "too long" {
		t.Errorf("the error is %v", err)
	}
	if err := tc.Build(t.Context(), deviceBuild(t, "void k(x"), path); !errors.As(err, &failure) || failure.Kind != Rejected {
		t.Errorf("the error is %v", err)
	}
}

// TestCompilersWithoutGPUsAreNamed checks that the error gives the package to install.
func TestCompilersWithoutGPUsAreNamed(t *testing.T) {
	tc, err := Find(t.Context(), "gcc")
	if err != nil {
		t.Fatal(err)
	}
	var failure *Error
	err = tc.Build(t.Context(), deviceBuild(t, ""), filepath.Join(t.TempDir(), "k"))
	if !errors.As(err, &failure) || failure.Kind != Infra || !strings.Contains(err.Error(), "clang 19 or later") {
		t.Errorf("the error is %v", err)
	}
}
