package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRunTimesBothKernels(t *testing.T) {
	k := NewCalibrationKernels(2, 1<<20, nil)
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
	if CalibrationChange(times, times) != 0 {
		t.Errorf("times differ from themselves by %v", CalibrationChange(times, times))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := NewCalibrationKernels(1, 0, nil).Run(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestCalibrationNamesIdentifyTheirKernels(t *testing.T) {
	if NewCalibrationKernels(1, 0, nil).Name() == NewCalibrationKernels(1, 1<<30, nil).Name() {
		t.Error("buffers of different sizes have one name")
	}
	if NewCalibrationKernels(1, 1<<40, nil).bufferBytes != maxBuffer || NewCalibrationKernels(0, 0, nil).threads != 1 {
		t.Errorf("kernels are not bounded: %s", NewCalibrationKernels(0, 1<<40, nil).Name())
	}
}

// TestCalibrationRunsOnItsCores checks that kernels run on their class of cores and report its name.
func TestCalibrationRunsOnItsCores(t *testing.T) {
	if name := NewCalibrationKernels(1, 0, []int{4, 5, 6, 7}).Name(); !strings.HasSuffix(name, " cpus=4-7") {
		t.Errorf("the kernels' name is %s", name)
	}
	_, err := NewCalibrationKernels(2, 0, []int{1022, 1023}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "processors 1022-1023") {
		t.Errorf("on processors that are not there: %v", err)
	}
}
