package main

import (
	"os/exec"
	"strings"
	"testing"
)

// python is one of this machine.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	return path
}

// TestAPythonWithoutAGPUIsNoPeer, whether it lacks PyTorch or a GPU for it: questions have answers all the same.
func TestAPythonWithoutAGPUIsNoPeer(t *testing.T) {
	b := &bench{options: options{python: python(t)}}
	defer b.close()
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if v := b.versions(t.Context()); v != "" {
		t.Fatalf("there are peers: %s", v)
	}
	for range 2 {
		if _, err := b.peer(t.Context(), question{What: "product", M: 1, K: 1, N: 1, DType: "float32"}); err == nil || strings.Contains(err.Error(), "ended") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestAPeerThatEndsIsStartedAgain by the next question.
func TestAPeerThatEndsIsStartedAgain(t *testing.T) {
	b := program(t, `read line; echo '{"seconds": 1}'`+"\n")
	b.python = b.tilth
	defer b.close()
	for k, ends := range []bool{false, true, false} {
		if _, err := b.peer(t.Context(), question{What: "product"}); (err != nil) != ends {
			t.Errorf("question %d: %v", k, err)
		}
	}
}
