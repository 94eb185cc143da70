package calibration

import (
	"context"
	"errors"
	"testing"
)

func TestRunTimesBothKernels(t *testing.T) {
	k := New(2, 1<<20)
	times, err := k.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]float64{"compute": times.Compute, "memory": times.Memory} {
		if len(list) != samples {
			t.Errorf("%d samples of %s", len(list), name)
		}
		for _, s := range list {
			if s <= 0 || s > 10 {
				t.Errorf("a sample of %s takes %v s", name, s)
			}
		}
	}
	if Change(times, times) != 0 {
		t.Errorf("times differ from themselves by %v", Change(times, times))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := New(1, 0).Run(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestNamesTellWhatCanBeCompared(t *testing.T) {
	if New(1, 0).Name() == New(1, 1<<30).Name() {
		t.Error("buffers of different sizes have one name")
	}
	if New(1, 1<<40).bufferBytes != mostBuffer || New(0, 0).threads != 1 {
		t.Errorf("kernels are not bounded: %s", New(0, 1<<40).Name())
	}
}
