package retry

import (
	"fmt"
	"testing"
)

func TestComplaintsAreThrottled(t *testing.T) {
	var c RepeatedErrors
	var due []int
	for n := 1; n <= 1000; n++ {
		if c.Due() {
			due = append(due, n)
		}
	}
	if got := fmt.Sprint(due); got != "[1 2 4 8 16 32 64 128 256 512 768]" {
		t.Errorf("written down are %s", got)
	}
}
